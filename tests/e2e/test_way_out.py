"""A turn whose page can't follow it any more, as its chat is gone or the connection stays broken, has a way on."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SLOW = "e2e-slow: when does the nightly backup job start?"
TRIES = 12
"""A few more than the page makes."""
LONGEST_WAIT_MS = 4000


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path) -> ChatPage:
    """A page on a Docent that has read the documents."""
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def in_a_chat(chat: ChatPage) -> str:
    """The path of the chat, once it has one."""
    expect(chat.page).to_have_url(re.compile(r"/chats/\d+$"))
    return re.sub("^.*(?=/chats/)", "", chat.page.url)


def test_a_chat_that_was_deleted_elsewhere_says_so_and_keeps_the_question(
    chat: ChatPage, docent: ServerProcess
) -> None:
    """While it answers, which stops the turn before the chat goes, and when it is asked again: no talk of a broken
    connection, and the way to a new chat."""
    chat.ask(SLOW)
    expect(chat.answer).to_contain_text("word 3", timeout=60_000)
    path = in_a_chat(chat)
    assert chat.page.request.delete(f"/api{path}", headers={"Origin": docent.url}).ok
    expect(chat.turn).to_contain_text(re.compile("Stopped|This chat was removed"), timeout=30_000)
    chat.ask("Where does Syncthing listen?")
    expect(chat.turn.get_by_role("alert")).to_contain_text("This chat was removed", timeout=30_000)
    chat.turn.get_by_role("link", name="Ask it in a new chat").click()
    chat.page.wait_for_url(re.compile(r"q="))
    expect(chat.page.get_by_role("textbox", name="Your question")).to_have_value(
        "Where does Syncthing listen?", timeout=30_000
    )


def test_a_page_that_gave_up_comes_back_when_it_is_told_to(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The connection stays broken until the page has tried often enough; a button follows the turn once more."""
    mock_llm.app.records.clear()
    chat.ask(SLOW)
    path = in_a_chat(chat)
    chat.page.clock.install()
    chat.page.route("**/events*", lambda route: route.abort())
    chat.page.reload()
    lost = chat.turn.get_by_role("alert")
    for _ in range(TRIES):
        chat.page.clock.run_for(LONGEST_WAIT_MS)
    expect(lost).to_contain_text("The connection broke. The answer goes on without this page.", timeout=30_000)
    chat.page.unroute("**/events*")
    lost.get_by_role("button", name="Try again").click()
    expect(lost).to_have_count(0)
    chat.until_settled()
    message = chat.page.request.get(f"/api{path}").json()["messages"][-1]
    assert message["status"] == "complete"
    assert (chat.answer.text_content() or "").strip() == message["content"]
    assert len(mock_llm.requests) == 1
    chat.is_harmless()
