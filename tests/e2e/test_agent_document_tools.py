"""Tools in a real browser: what the model looks up stands in lines over the answer, and what it finds can be cited."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from app.rag.prompts import GivenPassage, parse_passages
from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm, Record
from tests.e2e.mock_tools import TALK
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SUBJECT = "when does the nightly backup job start?"
LOOKUPS = ".tools li.tool"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, documents: Path) -> list[Path]:
    """The small documents, and one of several passages."""
    handbook = tmp_path_factory.mktemp("handbook") / "handbook.md"
    chapters = [
        f"## Chapter {n}\n\n" + f"The crew of chapter {n} waters the garden on day {n}. " * 30 for n in range(1, 9)
    ]
    handbook.write_text("# Handbook\n\n" + "\n\n".join(chapters) + "\n\nThe pump code is zulu-42.\n", "utf-8")
    return [*sorted(documents.iterdir()), handbook]


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, library: list[Path], mock_llm: MockLlm) -> Iterator[ChatPage]:
    """A page on a Docent that has read the library; at the end nothing ran that should not."""
    mock_llm.app.records.clear()
    page = open_page(docent)
    page.open()
    page.has_read(library)
    yield page
    page.is_harmless()


def lookups(chat: ChatPage) -> list[str]:
    """The lines of the last turn, folded ones too, without their times."""
    texts = chat.turn.locator(LOOKUPS).evaluate_all("(lines) => lines.map((line) => line.textContent)")
    return [re.sub(r" · [\d.]+ m?s$", "", " ".join(text.split())) for text in texts]


def told(request: Record) -> list[dict[str, Any]]:
    """The tool results that a request brought."""
    return [message for message in request.body["messages"] if message["role"] == "tool"]


def passages_told(request: Record) -> list[GivenPassage]:
    """The passages in them."""
    return parse_passages([{"role": "system", "content": "\n".join(result["content"] for result in told(request))}])


def test_a_document_is_read_and_its_passage_cited(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Search, read, answer: two lines, a numeral for the passage that the tool returned, and the reader opens there."""
    chat.ask('e2e-grep "zulu-42" which chapters of the handbook water the garden?')
    chat.expect_answer("The pump code is zulu-42")
    assert lookups(chat)[1] == "grep “zulu-42” in /library 1 match in 1 file"
    assert len(mock_llm.requests) == 2
    (shown,) = passages_told(mock_llm.requests[1])
    assert chat.answer.locator("a.cite").all_inner_texts() == [str(shown.n)]
    expect(chat.answer.locator(".note").first).to_contain_text("zulu-42")
    chat.open_source(shown.n)
    expect(chat.page.locator("#passage")).to_contain_text("zulu-42")
    expect(chat.page.locator("#passage mark").first).to_be_visible()


def test_lines_and_sources_come_while_the_turn_runs(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Before the answer is done: the line with its figures, the found passage in the rail, `[n]` already a link."""
    mock_llm.app.rate = 4
    try:
        chat.ask('e2e-grep "crew of chapter" who waters the garden of the handbook, and on which day?')
        expect(chat.answer.locator("a.cite")).to_have_count(1, timeout=20_000)
        expect(chat.turn).to_have_attribute("aria-busy", "true")
        live = lookups(chat)
        n = chat.answer.locator("a.cite").inner_text()
        expect(chat.turn.locator(".found li.used .noted")).to_have_text(n)
    finally:
        mock_llm.app.rate = 0
    chat.until_settled()
    assert live[1] == "grep “crew of chapter” in /library 8 matches in 1 file"
    assert lookups(chat)[1:] == live[1:]
    assert int(n) in {passage.n for passage in passages_told(mock_llm.requests[-1])}


def test_text_of_both_rounds_is_one_answer(chat: ChatPage) -> None:
    """What was said before the call stands above what was said after it."""
    chat.ask(f"e2e-read-talk {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    expect(chat.answer.locator("p").first).to_have_text(TALK)
    assert lookups(chat)[1].startswith("read /library/backup-plan.md")


def test_at_the_cap_the_answer_is_forced_without_tools(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Six requests offer tools, the seventh does not; four lines stand open, the rest unfolds by keyboard."""
    chat.ask(f'e2e-cap "backup" {SUBJECT}')
    chat.expect_answer("starts at 02:00")
    assert [request.tools_absent for request in mock_llm.requests] == [False] * 6 + [True]
    assert len(lookups(chat)) == 7
    fold = chat.turn.locator(".tools details")
    expect(fold.get_by_text("and 3 more")).to_be_visible()
    expect(fold.locator(".tool").last).to_be_hidden()
    fold.locator("summary").focus()
    chat.page.keyboard.press("Enter")
    expect(fold.locator(".tool").last).to_be_visible()


def test_the_same_call_for_ever_ends_in_an_answer(chat: ChatPage, mock_llm: MockLlm) -> None:
    """A model that repeats itself is out of rounds soon, and answers when it can't call any more."""
    chat.ask(f"e2e-loop {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    assert mock_llm.requests[-1].tools_absent
    assert len(mock_llm.requests) <= 8


def test_bad_calls_are_quiet_lines_and_the_answer_comes(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Broken JSON, a tool that isn't there, a path outside: said in a line each, told to the model, no alert."""
    chat.ask(f"e2e-bad-calls {SUBJECT}")
    chat.expect_answer("starts at 02:00")
    assert lookups(chat)[1:4] == [
        "read the call was not understood",
        "launch no such tool",
        "read ../../etc/passwd outside the library",
    ]
    expect(chat.turn.locator(".tool.wrong").first).to_be_visible()
    expect(chat.turn.get_by_role("img", name="failed").first).to_be_visible()
    expect(chat.turn.get_by_role("alert")).to_have_count(0)
    assert all("root:" not in str(message["content"]) for message in told(mock_llm.requests[-1]))
    expect(chat.turn.locator("img")).to_have_count(0)


def test_a_reload_shows_the_same_lines(chat: ChatPage) -> None:
    """Live, settled and stored are one."""
    chat.ask(f'e2e-tools "backup" {SUBJECT}')
    chat.until_settled()
    settled = chat.turn.locator(".tools").inner_text()
    chat.page.reload()
    assert chat.turn.locator(".tools").inner_text() == settled
    expect(chat.turn.locator(LOOKUPS)).to_have_count(6)


def test_the_receipt_lists_the_calls(chat: ChatPage) -> None:
    """One click from the answer: each call with what came of it."""
    chat.ask(f"e2e-read {SUBJECT}")
    chat.until_settled()
    chat.turn.get_by_role("link", name=re.compile("Receipt")).click()
    expect(chat.page.locator(".calls tbody tr")).to_have_count(1)
    expect(chat.page.locator(".calls tbody tr")).to_contain_text("/library/backup-plan.md")


def test_a_deflected_turn_is_offered_no_tools(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Nothing was found to start from."""
    chat.ask("e2e-read Which sourdough recipe needs the longest fermentation?")
    chat.expect_answer("nothing about that")
    assert [request.tools_absent for request in mock_llm.requests] == [True]


def test_the_kill_switch_takes_the_tools_away(
    start_server: StartServer, mock_llm: MockLlm, open_page: OpenPage, documents: Path
) -> None:
    """AGENT_ENABLED=false: one request without tools, an answer from the passages alone."""
    mock_llm.app.records.clear()
    page = open_page(start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model", AGENT_ENABLED="false"))
    page.open()
    page.upload(sorted(documents.iterdir()))
    page.ask(f"e2e-read {SUBJECT}")
    page.expect_answer("starts at 02:00")
    assert [request.tools_absent for request in mock_llm.requests] == [True]
    expect(page.turn.locator(LOOKUPS)).to_have_count(1)
