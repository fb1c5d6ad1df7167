"""A turn that is left, reloaded, watched twice or cut off, in a real browser: the answer is whole and there once."""

import random
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.cutting_proxy import cutting
from tests.e2e.conftest import OpenPage
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess
from tests.waiting import until

SUBJECT = "when does the nightly backup job start?"
SLOW = f"e2e-slow: {SUBJECT}"
WHOLE = "Slowly, " + " ".join(f"word {number}" for number in range(1, 201)) + "."
RATE = 40.0
RELOADS = 20
CUTS = 50
TABS = 8

_WATCH_LIVE = """
window.__wrong = [];
const texts = new WeakMap();
new MutationObserver(() => {
  for (const answer of document.querySelectorAll(".turn.live .answer")) {
    const now = answer.textContent.trim();
    const before = texts.get(answer) ?? "";
    if (!now.startsWith(before)) window.__wrong.push([before.slice(-40), now.slice(-40)]);
    texts.set(answer, now);
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
"""Notes whenever a streaming answer loses what it had."""


_CAN_HIDE = "Object.defineProperty(document, 'hidden', { get: () => window.__hidden ?? false });"
"""Chromium without a window shows every tab."""


@pytest.fixture(scope="module")
def mock_llm() -> Iterator[MockLlm]:
    """A model that takes ten seconds for the whole answer."""
    with MockLlm(rate=RATE) as server:
        yield server


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path, mock_llm: MockLlm) -> ChatPage:
    """A page that watches its answers grow, on a Docent that has read the documents; the mock forgets."""
    urllib.request.urlopen(
        urllib.request.Request(f"{mock_llm.base_url.removesuffix('/v1')}/__reset", method="POST")
    ).close()
    page = watching(open_page, docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def watching(open_page: OpenPage, server: Any) -> ChatPage:
    page = open_page(server)
    page.page.add_init_script(_WATCH_LIVE)
    return page


def in_a_chat(chat: ChatPage) -> str:
    """The path of the chat, once it has one."""
    expect(chat.page).to_have_url(re.compile(r"/chats/\d+$"))
    return re.sub("^.*(?=/chats/)", "", chat.page.url)


def has_only_grown(chat: ChatPage) -> None:
    """What the answer shows is the beginning of the whole one, and it never lost a character on this page."""
    assert chat.page.evaluate("window.__wrong") == []
    shown = (chat.answer.text_content() or "").strip()
    assert WHOLE.startswith(shown), shown[-80:]


def stored(chat: ChatPage, path: str) -> dict[str, Any]:
    """The chat's last message as the database holds it."""
    messages = chat.page.request.get(f"/api{path}").json()["messages"]
    last: dict[str, Any] = messages[-1]
    return last


def is_whole(chat: ChatPage, path: str) -> None:
    """The turn is done; page, database and the model's own words are equal."""
    chat.until_settled()
    message = stored(chat, path)
    assert (message["status"], message["content"]) == ("complete", WHOLE)
    assert (chat.answer.text_content() or "").strip() == WHOLE


def test_twenty_reloads_lose_and_double_nothing(chat: ChatPage, mock_llm: MockLlm) -> None:
    """At random moments of one turn; each page shows the beginning of the answer and follows on."""
    moments = random.Random(20)
    chat.ask(SLOW)
    path = in_a_chat(chat)
    reached = 0
    for _ in range(RELOADS):
        reached = min(190, reached + moments.randint(1, 16))
        chat.page.reload()
        expect(chat.answer).to_contain_text(f"word {reached} ", timeout=30_000)
        has_only_grown(chat)
    is_whole(chat, path)
    assert len(mock_llm.requests) == 1
    chat.is_harmless()


def test_a_closed_tab_ends_nothing(
    chat: ChatPage, docent: ServerProcess, open_page: OpenPage, mock_llm: MockLlm
) -> None:
    """The model is left alone; another browser finds the turn at work, and later finds it done."""
    chat.ask(SLOW)
    path = in_a_chat(chat)
    expect(chat.answer).to_contain_text("word 3 ")
    chat.page.context.close()
    other = watching(open_page, docent)
    other.open(path)
    expect(other.turn).to_have_attribute("aria-busy", "true")
    expect(other.answer).to_contain_text("word 20 ", timeout=30_000)
    has_only_grown(other)
    other.page.goto("/library")
    other.page.wait_for_function(
        "async (path) => (await (await fetch(path)).json()).messages.at(-1).status === 'complete'",
        arg=f"/api{path}",
        timeout=40_000,
        polling=500,
    )
    other.open(path)
    is_whole(other, path)
    assert mock_llm.requests[0].disconnected_at is None


def test_fifty_cuts_leave_the_text_whole(
    chat: ChatPage, docent: ServerProcess, open_page: OpenPage, documents: Path
) -> None:
    """The network breaks again and again; the page comes back by itself, and says nothing of it."""
    moments = random.Random(50)
    first_frame, frame = 2500, 100  # bytes, the first one with its sources
    after = [first_frame, *(moments.randint(frame, 3 * frame) for _ in range(CUTS - 1))]
    with cutting(docent.port, after) as proxy:
        page = watching(open_page, proxy)
        page.open()
        page.ask(SLOW)
        path = in_a_chat(page)
        expect(page.answer).to_contain_text("word 200.", timeout=60_000)
        is_whole(page, path)
        assert page.page.evaluate("window.__wrong") == []
        expect(page.turn.get_by_role("alert")).to_have_count(0)
        assert proxy.cuts == CUTS


def test_two_tabs_on_one_chat_see_the_same(chat: ChatPage, docent: ServerProcess, mock_llm: MockLlm) -> None:
    """In one browser: both stream, both settle to the same; the second can't ask meanwhile."""
    chat.ask(SLOW)
    path = in_a_chat(chat)
    second = ChatPage(chat.page.context.new_page(), docent.url)
    second.page.add_init_script(_WATCH_LIVE)
    second.open(path)
    expect(second.answer).to_contain_text("word 6 ")
    expect(second.page.get_by_role("button", name="Ask", exact=True)).to_be_hidden()
    for page in (chat, second):
        has_only_grown(page)
    second.stop()
    for page in (chat, second):
        page.until_settled()
    assert chat.answer.inner_text() == second.answer.inner_text()
    assert len(mock_llm.requests) == 1


@pytest.mark.parametrize("how", ["two Enters", "double click"])
def test_asking_twice_in_a_hurry_is_one_turn(chat: ChatPage, mock_llm: MockLlm, how: str) -> None:
    """One question, one chat, one request; the second click does not press the Stop that stands there by then."""
    field = chat.page.get_by_role("textbox", name="Your question")
    field.fill(SUBJECT)
    if how == "two Enters":
        field.evaluate(
            "(field) => { for (let n = 0; n < 2; n += 1) field.dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true })); }"
        )
    else:
        chat.page.get_by_role("button", name="Ask", exact=True).dblclick()
    chat.expect_answer("starts at 02:00")
    expect(chat.page.locator(".turn")).to_have_count(1)
    assert len(mock_llm.requests) == 1
    assert len(chat.page.request.get(f"/api{in_a_chat(chat)}").json()["messages"]) == 2


def test_a_question_sent_again_after_a_broken_connection_is_one_turn(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The answer to the first sending was lost on the way: the same key comes again, and finds its turn."""
    lost = threading.Event()

    def lose(route: Any) -> None:
        if lost.is_set():
            route.continue_()
            return
        lost.set()
        route.fetch()
        route.abort("connectionreset")

    chat.page.route("**/api/chat", lose)
    chat.ask(SUBJECT)
    chat.expect_answer("starts at 02:00")
    expect(chat.page.locator(".turn")).to_have_count(1)
    assert len(mock_llm.requests) == 1


def test_two_browsers_that_ask_in_one_chat_get_one_turn_and_a_sentence(
    chat: ChatPage, docent: ServerProcess, open_page: OpenPage, mock_llm: MockLlm
) -> None:
    """The second question is not lost: it is back in its field, beside the sentence that says why."""
    chat.ask(SUBJECT)
    chat.until_settled()
    path = in_a_chat(chat)
    other = watching(open_page, docent)
    other.open(path)
    chat.ask(SLOW)
    expect(chat.answer).to_contain_text("word 2 ")
    field = other.page.get_by_role("textbox", name="Your question")
    field.fill("And what about the router?")
    field.press("Enter")
    expect(other.page.locator("#composer-say")).to_contain_text("An answer is still being written in this chat.")
    expect(field).to_have_value("And what about the router?")
    assert len(mock_llm.requests) == 2
    has_only_grown(chat)
    chat.stop()
    chat.until_settled()
    field.press("Enter")
    other.until_settled()
    assert len(mock_llm.requests) == 3


def test_eight_tabs_are_all_usable(chat: ChatPage, docent: ServerProcess) -> None:
    """A browser opens six connections to a server: tabs nobody looks at give theirs back, and catch up when seen."""
    tabs = [chat, *(ChatPage(chat.page.context.new_page(), docent.url) for _ in range(TABS - 1))]
    for number, tab in enumerate(tabs):
        tab.page.add_init_script(_WATCH_LIVE + _CAN_HIDE)
        tab.open()
        tab.ask(f"{SLOW} tab {number}")
        expect(tab.answer).to_contain_text("word 2 ")
        turn_to(tab, hidden=True)
    for tab in tabs:
        turn_to(tab, hidden=False)
        is_whole(tab, in_a_chat(tab))
        assert tab.page.evaluate("window.__wrong") == []


def test_a_turn_that_ends_while_its_tab_is_hidden_is_there_when_it_is_seen(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The hidden tab lets go of its connection, not of its turn."""
    chat.page.add_init_script(_CAN_HIDE)
    chat.page.reload()
    chat.ask(f"e2e-think-slow {SUBJECT}")
    expect(chat.turn.locator("details.thinking")).to_be_visible()
    turn_to(chat, hidden=True)
    until(lambda: mock_llm.requests[0].ended_at is not None, "the model has answered")
    expect(chat.turn).to_have_attribute("aria-busy", "true")
    turn_to(chat, hidden=False)
    chat.expect_answer("starts at 02:00")
    assert len(mock_llm.requests) == 1


def turn_to(chat: ChatPage, *, hidden: bool) -> None:
    """Hides or shows the tab, as the browser tells the page when another one is chosen."""
    chat.page.evaluate(
        "(hidden) => { window.__hidden = hidden; document.dispatchEvent(new Event('visibilitychange')); }", hidden
    )
