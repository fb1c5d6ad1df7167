"""Which conversation a request belongs to."""

import re
from typing import Any

import pytest

from app.guard.session import session_id

SYSTEM = {"role": "system", "content": "You are a builder.\nCurrent date: 2026-01-31\nCurrent time: 12:00\nBe brief."}
QUESTION = {"role": "user", "content": "Which fuse is it?"}


def derived(*messages: Any) -> str | None:
    return session_id(None, list(messages))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Chat-42_a.b", "chat-42_a.b"),
        ("  a b/c\n<d>  ", "a-b-c-d"),
        ("X" * 500, "x" * 128),
    ],
)
def test_a_header_names_the_session(header: str, expected: str) -> None:
    """Lower case, plain characters, bounded."""
    assert session_id(header, [SYSTEM, QUESTION]) == expected


@pytest.mark.parametrize("header", [None, "", "   ", "///", "é"])
def test_without_a_usable_header_it_is_derived(header: str | None) -> None:
    """From how the conversation begins."""
    assert re.fullmatch(r"auto-[0-9a-f]{32}", session_id(header, [SYSTEM, QUESTION]) or "")


def test_a_session_keeps_its_id_as_the_conversation_grows() -> None:
    """And while the clock in the system text goes on."""
    later = {**SYSTEM, "content": SYSTEM["content"].replace("12:00", "12:01").replace("31", "30")}
    more = [
        {"role": "assistant", "content": "The left."},
        {"role": "user", "content": "Sure?"},
        {"role": "system", "content": "x"},
    ]

    assert derived(SYSTEM, QUESTION) == derived(later, QUESTION, *more)


def test_another_system_text_question_or_picture_is_another_session() -> None:
    """All of them count."""
    parts = {"role": "user", "content": [{"type": "text", "text": "Which fuse is it?"}]}
    pictures = [
        {**parts, "content": [*parts["content"], {"type": "image_url", "image_url": url}]}
        for url in ({"url": "data:a"}, {"url": "data:b"}, "data:c", None)
    ]
    ids = [derived(SYSTEM, QUESTION), derived(QUESTION), derived(SYSTEM, {**QUESTION, "content": "Which?"})]
    ids += [derived(SYSTEM, one) for one in pictures]

    assert len(set(ids)) == len(ids) - 1
    assert derived(SYSTEM, pictures[3]) == derived(SYSTEM, parts) == derived(SYSTEM, QUESTION)


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        "x",
        [None],
        [{}],
        [{"role": "user", "content": None}],
        [{"role": "system", "content": "Current time: 1"}],
    ],
)
def test_nothing_to_go_by_is_no_session(messages: Any) -> None:
    """Unknown, not made up."""
    assert session_id(None, messages) is None


def test_a_conversation_without_a_user_message_goes_by_its_system_text() -> None:
    """Half a surrogate pair in it does no harm."""
    assert (derived({"role": "developer", "content": "Be \ud800"}) or "").startswith("auto-")
