"""The Thinking block in a real browser: there while the model thinks, folded, raw, and kept.

That it is folded once the answer is there is shown in `test_chat_rag.py`, that tokens in it never reach the answer in
`test_tool_scaffolding_guardrails.py`.
"""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.mock_flows import THOUGHTS
from tests.e2e.mock_scaffolding import LEAK
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SUBJECT = "when does the nightly backup job start?"
SLOW = f"e2e-think-slow {SUBJECT}"


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path) -> ChatPage:
    """A page on a Docent that has read the documents."""
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def fold(chat: ChatPage) -> Locator:
    """The last turn's Thinking block."""
    return chat.turn.locator("details.thinking")


def text_of(chat: ChatPage) -> str:
    return fold(chat).locator(".fold-text").text_content() or ""


def seconds(chat: ChatPage) -> float:
    """What the block's line says of its time."""
    found = re.search(r"(\d+\.\d) s", fold(chat).locator("summary").inner_text())
    assert found is not None, fold(chat).locator("summary").inner_text()
    return float(found.group(1))


def test_thinking_streams_with_its_time_and_the_answer_follows(chat: ChatPage) -> None:
    """Folded from its first word; the time counts up, then stands; the answer holds nothing of it."""
    chat.ask(SLOW)
    expect(fold(chat).locator("summary")).to_contain_text("Thinking")
    assert fold(chat).get_attribute("open") is None
    expect(chat.answer).to_be_empty()
    first = seconds(chat)
    expect(fold(chat).locator(".fold-text")).to_contain_text("Thought 6:")
    assert seconds(chat) > first
    expect(chat.answer).not_to_be_empty()
    expect(fold(chat).locator("summary")).to_contain_text(re.compile(r"Thought for \d+\.\d s"))
    chat.until_settled()
    assert text_of(chat) == THOUGHTS
    chat.never_shows("Thought 1:")


def test_thinking_is_raw_and_harmless(chat: ChatPage) -> None:
    """No Markdown, no HTML: what the model wrote, character by character, live and settled."""
    chat.ask(SLOW)
    expect(fold(chat).locator(".fold-text")).to_contain_text("Thought 4:")
    assert THOUGHTS.startswith(text_of(chat))
    for kind in ("strong", "b", "em"):
        expect(fold(chat).locator(f".fold-text {kind}")).to_have_count(0)
    chat.until_settled()
    expect(fold(chat).locator(".fold-text *")).to_have_count(0)
    assert text_of(chat) == THOUGHTS
    chat.is_harmless()


def test_the_block_opens_and_closes_by_keyboard_while_it_streams(chat: ChatPage) -> None:
    """Enter and Space; text goes on arriving in an open block, and it stays open when the answer is done."""
    chat.ask(SLOW)
    expect(fold(chat)).to_be_visible()
    inside = fold(chat).locator(".fold-text")
    fold(chat).locator("summary").focus()
    chat.page.keyboard.press("Enter")
    expect(inside).to_be_visible()
    chat.page.keyboard.press("Space")
    expect(inside).to_be_hidden()
    chat.page.keyboard.press("Enter")
    expect(inside).to_contain_text("Thought 8:")
    expect(inside).to_be_visible()
    chat.until_settled()
    expect(inside).to_be_visible()
    assert text_of(chat) == THOUGHTS


def test_thinking_survives_a_reload_in_the_middle_and_at_the_end(chat: ChatPage) -> None:
    """The page that comes back has all of it, and what follows, once."""
    chat.ask(SLOW)
    expect(fold(chat).locator(".fold-text")).to_contain_text("Thought 3:")
    chat.page.reload()
    expect(fold(chat).locator(".fold-text")).to_contain_text("Thought 5:")
    assert THOUGHTS.startswith(text_of(chat))
    chat.until_settled()
    assert text_of(chat) == THOUGHTS
    chat.page.reload()
    expect(fold(chat).locator("summary")).to_contain_text(re.compile(r"Thought for [1-9]\d*\.\d s"))
    assert text_of(chat) == THOUGHTS
    expect(fold(chat).locator(".fold-text")).to_be_hidden()


def test_a_stop_while_it_thinks_keeps_the_thinking(chat: ChatPage) -> None:
    """There is no answer yet, and nothing to continue; the block stays."""
    chat.ask(SLOW)
    expect(fold(chat).locator(".fold-text")).to_contain_text("Thought 3:")
    shown = text_of(chat)
    chat.stop()
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped before the answer began.")
    assert text_of(chat).startswith(shown)
    assert THOUGHTS.startswith(text_of(chat))


def test_tokens_in_the_thinking_stay_visible_there_and_only_there(chat: ChatPage) -> None:
    """The scratchpad is the model's own: raw there, live and after a reload; never in the answer."""
    chat.ask(f"e2e-think-scaffold {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    assert text_of(chat) == f"I would call {LEAK} here."
    chat.never_shows("tool_call_start")
    chat.page.reload()
    assert text_of(chat) == f"I would call {LEAK} here."
    expect(chat.answer).not_to_contain_text("tool_call_start")


def test_an_answer_without_thinking_has_no_block(chat: ChatPage) -> None:
    """Nothing empty is shown, live or settled."""
    chat.ask(f"e2e-slow: {SUBJECT}")
    expect(chat.answer).to_contain_text("word 1 ")
    expect(fold(chat)).to_be_hidden()
    chat.stop()
    chat.until_settled()
    expect(fold(chat)).to_have_count(0)
