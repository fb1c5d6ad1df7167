"""Stop in a real browser: whenever and from wherever it is pressed, the model is let go and the text stays.

What `test_chat_rag.py` shows of Stop in one tab is not repeated here.
"""

import re
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage
from tests.e2e.mock_llm import MockLlm, Record
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess
from tests.waiting import until

SUBJECT = "when does the nightly backup job start?"
ENDLESS = f"e2e-endless: {SUBJECT}"
SILENT = f"e2e-silent: {SUBJECT}"


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


def is_asked(mock_llm: MockLlm) -> Record:
    """The one request of the turn, once the model has it."""
    until(lambda: len(mock_llm.requests) == 1, "the model is asked")
    return mock_llm.requests[0]


def is_let_go(mock_llm: MockLlm) -> None:
    """The model was asked once and saw its connection closed before it was done."""
    until(lambda: is_asked(mock_llm).disconnected_at is not None, "the model's connection is closed")
    assert is_asked(mock_llm).ended_at is None


def can_ask_again(chat: ChatPage) -> None:
    """The composer takes a question, and it is answered."""
    expect(chat.page.get_by_role("button", name="Stop")).to_be_hidden()
    chat.ask(f"And again: {SUBJECT}")
    chat.expect_answer("starts at 02:00")


def test_stop_before_the_first_token_lets_the_model_go(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Nothing has arrived: the turn says so, offers nothing to continue, and the question can be asked again."""
    chat.ask(SILENT)
    is_asked(mock_llm)
    chat.stop()
    chat.until_settled()
    is_let_go(mock_llm)
    expect(chat.turn).to_contain_text("Stopped before the answer began.")
    expect(chat.answer).to_be_empty()
    expect(chat.turn.get_by_role("button", name="Continue")).to_have_count(0)
    expect(chat.turn.get_by_role("button", name="Ask again")).to_be_visible()
    can_ask_again(chat)
    chat.is_harmless()


def test_stop_in_mid_stream_keeps_every_word_that_was_shown(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The stopped answer begins with what the reader saw, and it is what the database holds."""
    chat.ask(ENDLESS)
    expect(chat.answer).to_contain_text("word 4 ")
    shown = chat.answer.inner_text().strip()  # a settled answer has no blank before its first word
    chat.stop()
    chat.until_settled()
    is_let_go(mock_llm)
    kept = chat.answer.inner_text()
    assert kept.startswith(shown)
    assert stored_answer(chat).strip() == kept
    expect(chat.page.locator("#spoken")).to_have_text("Stopped")
    can_ask_again(chat)


def test_stop_pressed_twice_is_one_stop(chat: ChatPage, docent: ServerProcess, mock_llm: MockLlm) -> None:
    """A double click ends the turn once, and stops nothing else."""
    chat.ask(ENDLESS)
    expect(chat.answer).to_contain_text("word 2 ")
    chat.page.get_by_role("button", name="Stop").dblclick()
    chat.until_settled()
    is_let_go(mock_llm)
    turn_id = chat.turn.get_attribute("data-turn")
    assert docent.log().count(f"turn={turn_id} ") == 1
    assert chat.page.request.post(f"/api/turns/{turn_id}/stop").status == 204
    can_ask_again(chat)


def test_stop_is_reached_by_tab_and_pressed_by_space(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Without a mouse; the focus is in the question's field afterwards."""
    chat.ask(ENDLESS)
    expect(chat.answer).to_contain_text("word 2 ")
    stop = chat.page.get_by_role("button", name="Stop")
    for _ in range(6):
        chat.page.keyboard.press("Tab")
        if stop.evaluate("(button) => button === document.activeElement"):
            break
    expect(stop).to_be_focused()
    chat.page.keyboard.press("Space")
    chat.until_settled()
    is_let_go(mock_llm)
    expect(chat.page.get_by_role("textbox", name="Your question")).to_be_focused()


def test_another_tab_stops_the_turn_for_both(
    chat: ChatPage, docent: ServerProcess, open_page: OpenPage, mock_llm: MockLlm
) -> None:
    """The other tab watches the same turn; its Stop ends it here too, with the same text."""
    chat.ask(ENDLESS)
    expect(chat.answer).to_contain_text("word 2 ")
    other = open_page(docent)
    other.open(chat.page.url)
    expect(other.answer).to_contain_text("word 3 ")
    other.stop()
    other.until_settled()
    chat.until_settled()
    is_let_go(mock_llm)
    for page in (chat, other):
        expect(page.turn).to_contain_text("Stopped. What arrived is kept.")
    assert chat.answer.inner_text() == other.answer.inner_text()
    can_ask_again(chat)


@pytest.mark.parametrize("question", [ENDLESS, SILENT])
def test_stop_is_there_after_a_reload(chat: ChatPage, mock_llm: MockLlm, question: str) -> None:
    """The page that comes back takes up the turn, and stops it; a silent model too."""
    chat.ask(question)
    is_asked(mock_llm)
    expect(chat.page).to_have_url(re.compile(r"/chats/\d+$"))
    chat.page.reload()
    expect(chat.turn).to_have_attribute("aria-busy", "true")
    chat.stop()
    chat.until_settled()
    is_let_go(mock_llm)
    expect(chat.turn).to_contain_text("Stopped")
    can_ask_again(chat)


def test_stop_pressed_while_the_question_is_on_its_way_stops_its_turn(chat: ChatPage) -> None:
    """The server has not yet answered with the turn's name: the stop is kept until it has."""
    chat.page.route("**/api/chat", lambda route: (chat.stop(), route.continue_()))
    chat.ask(ENDLESS)
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped")
    chat.page.unroute("**/api/chat")
    can_ask_again(chat)


def test_continue_asks_for_the_rest(chat: ChatPage, mock_llm: MockLlm) -> None:
    """A new turn in the same chat; the model is given the half answer."""
    chat.ask(ENDLESS)
    expect(chat.answer).to_contain_text("word 2 ")
    chat.stop()
    chat.until_settled()
    kept = chat.answer.inner_text()
    chat.turn.get_by_role("button", name="Continue").click()
    expect(chat.page.locator(".turn")).to_have_count(2)
    expect(chat.page.get_by_role("heading", name="Continue where the answer stopped.")).to_be_visible()
    chat.until_settled()
    expect(chat.answer).not_to_be_empty()
    history = [str(message["content"]) for message in mock_llm.requests[-1].body["messages"]]
    assert any(kept in text for text in history)


def stored_answer(chat: ChatPage) -> str:
    """The chat's last answer as the database holds it."""
    number = chat.page.url.rsplit("/", 1)[-1]
    messages = chat.page.request.get(f"/api/chats/{number}").json()["messages"]
    content: str = messages[-1]["content"]
    return content
