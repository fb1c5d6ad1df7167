"""A model that leaks its tool syntax: the reader sees a clean answer or one clear sentence, never a raw token."""

import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

TOKENS = ("<|tool_call", "tool_call_start", "tool_call_end", "backup-notes.md")
MALFORMED = "The model returned a malformed reply — please try again."


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path, mock_llm: MockLlm) -> ChatPage:
    """A page on a Docent that has read the documents; the mock forgets earlier requests."""
    urllib.request.urlopen(
        urllib.request.Request(f"{mock_llm.base_url.removesuffix('/v1')}/__reset", method="POST")
    ).close()
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def shows_no_token(chat: ChatPage) -> None:
    """Not now, and not for a moment since the page came."""
    for token in TOKENS:
        chat.never_shows(token)
        expect(chat.turn.locator(".answer, .notice, [role=alert]").filter(has_text=token)).to_have_count(0)


@pytest.mark.parametrize(
    "subject", ["when does the nightly backup job start?", "who won the chess match in Reykjavik?"]
)
def test_a_leaked_call_is_recovered_once(chat: ChatPage, mock_llm: MockLlm, subject: str) -> None:
    """Grounded and deflected: one further request without tools and with one system message, then a clean answer."""
    chat.ask(f"e2e-scaffold-once {subject}")
    chat.until_settled()
    expect(chat.answer).not_to_be_empty()
    expect(chat.turn.get_by_role("alert")).to_have_count(0)
    shows_no_token(chat)
    assert len(mock_llm.requests) == 2
    assert "tools" not in mock_llm.requests[-1].body
    for request in mock_llm.requests:
        assert [message["role"] for message in request.body["messages"]].count("system") == 1


def test_a_second_leak_ends_in_one_sentence_and_the_app_stays_usable(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The error state with its own words; the next question is answered; a reload shows the same."""
    chat.ask("e2e-scaffold-twice when does the nightly backup job start?")
    chat.expect_error(MALFORMED)
    shows_no_token(chat)
    assert len(mock_llm.requests) == 2
    chat.ask("When does the nightly backup job start?")
    chat.expect_answer("starts at 02:00")
    chat.page.reload()
    expect(chat.page.get_by_role("alert").first).to_contain_text(MALFORMED)
    shows_no_token(chat)


@pytest.mark.parametrize(
    ("trigger", "left"),
    [
        ("e2e-scaffold-mixed", "Before the call.  After the call."),
        ("e2e-scaffold-split", "Split  apart."),
        ("e2e-scaffold-open", "Cut off:"),
    ],
)
def test_text_around_a_call_stays_and_needs_no_recovery(
    chat: ChatPage, mock_llm: MockLlm, trigger: str, left: str
) -> None:
    """Whole, character by character, or cut off by the end of the stream."""
    chat.ask(f"{trigger} when does the nightly backup job start?")
    chat.expect_answer(" ".join(left.split()))
    shows_no_token(chat)
    assert len(mock_llm.requests) == 1


def test_thinking_is_the_models_own_and_stays_raw(chat: ChatPage) -> None:
    """The guardrail protects the answer, not the scratchpad."""
    chat.ask("e2e-think-scaffold when does the nightly backup job start?")
    chat.expect_answer("starts at 02:00")
    for token in TOKENS[:3]:
        chat.never_shows(token)
