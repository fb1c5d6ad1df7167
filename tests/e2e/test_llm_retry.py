"""A model server that is busy, cold, or breaks off, seen in a real browser: what the reader is told, and what is kept.

That one 503 costs a moment and that a broken connection keeps its text is shown in `test_chat_rag.py`; here it is what
the page says meanwhile, how often the server was asked, and what can be done next.
"""

import re
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SUBJECT = "when does the nightly backup job start?"
BUSY = "failed (HTTP 503). Its own log says why; your question is kept."

_WATCH_NOTICES = """
window.__notices = [];
new MutationObserver(() => {
  for (const notice of document.querySelectorAll(".live-notices .notice")) {
    const said = notice.textContent.trim();
    if (said && window.__notices.at(-1) !== said) window.__notices.push(said);
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


@pytest.fixture
def mock(mock_llm: MockLlm) -> MockLlm:
    """The mock model without earlier requests."""
    urllib.request.urlopen(
        urllib.request.Request(f"{mock_llm.base_url.removesuffix('/v1')}/__reset", method="POST")
    ).close()
    return mock_llm


def ready(open_page: OpenPage, server: ServerProcess, documents: Path) -> ChatPage:
    """A page that notes every notice it ever shows, on a Docent that has read the documents."""
    page = open_page(server)
    page.page.add_init_script(_WATCH_NOTICES)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path, mock: MockLlm) -> ChatPage:
    return ready(open_page, docent, documents)


def notices(chat: ChatPage) -> list[str]:
    """Every notice the page has shown so far, in order."""
    found: list[str] = chat.page.evaluate("window.__notices")
    return found


def line_of(server: ServerProcess, chat: ChatPage) -> str:
    """The last turn's line in the server's log."""
    turn_id = chat.turn.get_attribute("data-turn")
    (line,) = [line for line in server.log().splitlines() if f"chat_turn turn={turn_id} " in line]
    return line


def test_a_busy_server_is_tried_again_with_its_count(chat: ChatPage, docent: ServerProcess, mock: MockLlm) -> None:
    """The notice counts, and is gone with the answer; two requests, and `retries=1` in the line."""
    chat.ask(f"e2e-503-once: {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    assert notices(chat) == ["Trying again in 1 s (1 of 2)"]
    expect(chat.turn.locator(".notice")).to_have_count(0)
    assert len(mock.requests) == 2
    assert re.search(r" outcome=ok .* retries=1 scaffold_stripped=0$", line_of(docent, chat))
    chat.is_harmless()


def test_the_wait_a_server_asks_for_is_said_and_kept(chat: ChatPage, docent: ServerProcess, mock: MockLlm) -> None:
    """429 with Retry-After: the notice stands as long as the server wants, and Docent asks no earlier."""
    chat.ask(f"e2e-429-once: {SUBJECT}")
    expect(chat.turn.locator(".live-notices")).to_contain_text("Trying again in 2 s (1 of 2)")
    expect(chat.page.get_by_role("button", name="Stop")).to_be_visible()
    chat.expect_answer("starts at 02:00")
    first, second = mock.requests
    assert second.at - first.at >= 2
    assert line_of(docent, chat).endswith(" retries=1 scaffold_stripped=0")


def test_stop_ends_the_wait_for_the_next_try(chat: ChatPage, docent: ServerProcess, mock: MockLlm) -> None:
    """Between two tries too; the server is not asked again."""
    chat.ask(f"e2e-429-once: {SUBJECT}")
    expect(chat.turn.locator(".live-notices")).to_contain_text("Trying again")
    chat.stop()
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped before the answer began.")
    assert len(mock.requests) == 1
    assert " outcome=stopped " in line_of(docent, chat)


def test_a_server_that_stays_busy_is_one_sentence_and_try_again(
    start_server: StartServer, open_page: OpenPage, documents: Path, mock: MockLlm
) -> None:
    """Three requests, no more; the question is kept, also over a reload, and the app goes on."""
    server = start_server(LLM_BASE_URL=mock.base_url, LLM_MODEL="mock-model")
    chat = ready(open_page, server, documents)
    chat.ask(f"e2e-503-always: {SUBJECT}")
    chat.expect_error(BUSY)
    tries = [re.fullmatch(r"Trying again in [1-4] s \((\d) of 2\)", said) for said in notices(chat)]
    assert [found and found.group(1) for found in tries] == ["1", "2"]
    expect(chat.turn.get_by_role("alert")).to_have_count(1)
    assert len(mock.requests) == 3
    assert re.search(r" outcome=error .* retries=2 scaffold_stripped=0$", line_of(server, chat))
    chat.page.reload()
    expect(chat.turn.get_by_role("alert")).to_contain_text(BUSY)
    chat.turn.get_by_role("button", name="Edit question").click()
    expect(chat.page.get_by_role("textbox", name="Your question")).to_have_value(f"e2e-503-always: {SUBJECT}")
    chat.ask(f"Now then: {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    chat.is_harmless()


def test_try_again_asks_the_same_question_and_is_answered(
    start_server: StartServer, open_page: OpenPage, documents: Path, mock: MockLlm
) -> None:
    """Once the server is free, one click is enough; the turn that failed stays as it was."""
    server = start_server(LLM_BASE_URL=mock.base_url, LLM_MODEL="mock-model", LLM_RETRY_MAX="0")
    chat = ready(open_page, server, documents)
    chat.ask(f"e2e-503-once: {SUBJECT}")
    chat.expect_error(BUSY)
    assert notices(chat) == []
    chat.turn.get_by_role("button", name="Try again").click()
    expect(chat.page.locator(".turn")).to_have_count(2)
    chat.expect_answer("starts at 02:00")
    expect(chat.page.get_by_role("heading", name="e2e-503-once")).to_have_count(2)
    expect(chat.page.locator(".turn").first.get_by_role("alert")).to_contain_text(BUSY)
    assert len(mock.requests) == 2


def test_a_model_that_loads_is_told_with_the_time_it_takes(chat: ChatPage, mock: MockLlm) -> None:
    """After five seconds of silence a notice with the seconds so far; gone with the first word."""
    chat.ask(f"e2e-cold: {SUBJECT}")
    notice = chat.turn.locator(".live-notices")
    expect(notice).to_contain_text("The model is still loading.", timeout=15_000)
    expect(notice).to_contain_text(re.compile(r"\b[5-9] s\b"))
    chat.expect_answer("starts at 02:00")
    expect(chat.turn.locator(".notice")).to_have_count(0)
    assert len(mock.requests) == 1


def test_an_answer_that_breaks_off_is_not_asked_for_again(chat: ChatPage, docent: ServerProcess, mock: MockLlm) -> None:
    """What was shown can't be unsaid: the text stays beside the sentence, one request, no retry notice."""
    chat.ask(f"e2e-drop: {SUBJECT}")
    chat.expect_error("The answer broke off. What arrived is kept.")
    expect(chat.answer).to_have_text("The beginning of an answer that")
    assert notices(chat) == []
    assert len(mock.requests) == 1
    assert re.search(r" outcome=error .* retries=0 scaffold_stripped=0$", line_of(docent, chat))
    chat.page.reload()
    expect(chat.answer).to_have_text("The beginning of an answer that")
    chat.turn.get_by_role("button", name="Try again").click()
    expect(chat.page.locator(".turn")).to_have_count(2)
    chat.expect_error("The answer broke off.")
    assert len(mock.requests) == 2
