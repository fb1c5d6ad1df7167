"""A whole document in one answer: read at once, section by section with visible progress, or outlined without a model;
and which documents mention something, counted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.mock_whole import BROKEN_SECTION
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess
from tests.waiting import until

CHAPTER = "## Chapter {n}\n\n" + "The disks of shelf {n} are looked after by hand, once a week, on a Monday.\n" * 14
CHAPTERS = 16
PLAN = """# Backup plan

## Nightly jobs

The nightly backup job to the storage box starts at 02:00 and is done before 03:30.

## Retention

Retention is seven daily snapshots and four weekly snapshots of every machine.
"""
MAILS = "# Mails\n\nThe retention of mails is one year, and of logs one week.\n"
WINDOW = "2600"


def handbook(title: str) -> str:
    return f"# {title}\n\n" + "\n".join(CHAPTER.format(n=n) for n in range(1, CHAPTERS + 1))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short documents, and three that the model's window does not hold."""
    folder = tmp_path_factory.mktemp("whole")
    texts = {
        "plan.md": PLAN,
        "mails.md": MAILS,
        "storage.md": handbook("Storage handbook"),
        "broken.md": handbook("E2e-section-broken handbook"),
        "slow.md": handbook("E2e-section-slow handbook"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def small(start_server: StartServer, mock_llm: MockLlm) -> ServerProcess:
    """A Docent whose model has a small window."""
    return start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model", LLM_CONTEXT_TOKENS=WINDOW)


@pytest.fixture(scope="module")
def alone(start_server: StartServer) -> ServerProcess:
    """A Docent without a model."""
    return start_server()


@pytest.fixture
def chat(small: ServerProcess, open_page: OpenPage, files: list[Path], mock_llm: MockLlm) -> Iterator[ChatPage]:
    """A page on the library; at the end nothing ran that should not."""
    mock_llm.app.records.clear()
    page = open_page(small)
    page.open()
    page.has_read(files)
    yield page
    page.is_harmless()


def summaries(chat: ChatPage) -> list[str]:
    """What the lines over the last answer say of sections, below the one that says what is read."""
    found = chat.turn.locator(".tool .tool-summary")
    _, *lines = found.evaluate_all("(lines) => lines.map((line) => line.textContent)")
    return lines


def first_line(chat: ChatPage) -> Locator:
    """The line that says what is read."""
    return chat.turn.locator(".tools > ol > .tool").first


def sections(chat: ChatPage) -> int:
    """How many sections the settled turn tells of."""
    found = re.search(r"(\d+) of (\d+) sections read", chat.turn.locator(".given").inner_text())
    assert found
    return int(found[2])


def test_a_document_that_fits_is_read_at_once(chat: ChatPage, mock_llm: MockLlm) -> None:
    """One request with all of it; the citations open it; the receipt says so."""
    chat.ask("summarise the backup plan")
    chat.expect_answer("starts at 02:00")
    expect(chat.turn.locator(".given")).to_contain_text("read whole")
    expect(first_line(chat)).to_contain_text(re.compile(r"read\s+Backup plan\s+all of it · \d+ passages?"))
    (request,) = mock_llm.requests
    system = request.body["messages"][0]["content"]
    assert "starts at 02:00" in system
    assert "four weekly snapshots" in system
    assert request.tools_absent
    chat.turn.get_by_role("link", name="Receipt").first.click()
    expect(chat.page.locator("main")).to_contain_text("The whole document was given to the model at once: Backup plan.")
    chat.page.go_back()
    chat.open_source(1)
    expect(chat.page.locator("main")).to_contain_text("Backup plan")


def test_a_long_document_is_read_section_by_section(chat: ChatPage, mock_llm: MockLlm) -> None:
    """A line for each section, four open and the rest folded; the answer's citations open the right chapter."""
    chat.ask("summarise the storage handbook")
    chat.until_settled()
    total = sections(chat)
    assert total > 4
    lines = summaries(chat)
    assert [line.split(" · ")[0] for line in lines] == [f"section {n} of {total}" for n in range(1, total + 1)]
    expect(chat.turn.locator(".tools > ol .tool")).to_have_count(4)
    expect(chat.turn.locator(".tools .more summary")).to_contain_text(f"{total - 3} more")
    expect(first_line(chat)).to_contain_text(f"Storage handbook {total} of {total} sections read")
    assert len(mock_llm.requests) == total + 1
    assert all(request.tools_absent for request in mock_llm.requests)
    cite = chat.answer.locator("a.cite").last
    said = chat.answer.locator(".said").last.inner_text()
    shelf = re.findall(r"shelf (\d+)", said)[-1]
    cite.click()
    expect(chat.page.locator("#passage").first).to_be_visible()
    expect(chat.page.locator("mark").filter(has_text=f"shelf {shelf}").first).to_be_visible()


def test_progress_is_visible_while_it_reads_and_a_stop_ends_it_at_once(chat: ChatPage, mock_llm: MockLlm) -> None:
    """In the middle of a section; what was read stays, and no further request is made."""
    chat.ask("summarise the e2e-section-slow handbook")
    expect(chat.turn.locator(".tool .tool-summary").filter(has_text="section 2 of")).to_be_visible(timeout=30_000)
    lines = summaries(chat)
    assert " lines" in lines[0]
    assert " lines" not in lines[1]
    expect(first_line(chat)).to_have_class(re.compile("running"))
    expect(first_line(chat)).to_contain_text(re.compile(r"E2e-section-slow handbook\s+[1-9]\d* of \d+ sections read"))
    assert "1.00" not in chat.turn.locator(".found").inner_text()
    chat.stop()
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped before the answer began.")
    assert "section 1 of" in summaries(chat)[0]
    until(lambda: mock_llm.requests[-1].disconnected_at is not None, "the request in hand is left")
    assert len(mock_llm.requests) == 2
    chat.page.reload()
    expect(chat.turn).to_contain_text("section 1 of")


def test_a_section_that_can_not_be_read_is_said(chat: ChatPage) -> None:
    """Its line is marked, a notice counts it, and the answer is there all the same."""
    chat.ask("summarise the e2e-section-broken handbook")
    chat.until_settled()
    total = int(summaries(chat)[0].split(" · ")[0].rpartition(" ")[2])
    expect(first_line(chat)).to_contain_text(f"{total - 1} of {total} sections read")
    expect(chat.turn.locator(".tool.wrong")).to_have_text(re.compile(f"section {BROKEN_SECTION} of {total} could not"))
    expect(chat.turn.locator(".notice")).to_contain_text(f"1 of {total} sections could not be read")
    expect(chat.turn.locator(".given")).to_contain_text(f"{total - 1} of {total} sections read")
    expect(chat.answer.locator("a.cite").first).to_be_visible()


def test_a_question_about_one_named_document_reads_it_whole_and_a_summary_of_it_does_too(
    chat: ChatPage, mock_llm: MockLlm
) -> None:
    """The document that the question names is all the model is given; "it" is the one that was talked about."""
    chat.ask("how long are things kept according to @mails.md?")
    chat.expect_answer("one year")
    expect(chat.turn.locator(".given")).to_contain_text("read whole")
    chat.ask("summarise it")
    chat.expect_answer("one year")
    expect(chat.turn.locator(".given")).to_contain_text("read whole")
    assert len(mock_llm.requests) == 2
    assert not any("storage box" in str(request.body["messages"]) for request in mock_llm.requests)


def test_documents_that_mention_something_are_counted(chat: ChatPage, mock_llm: MockLlm) -> None:
    """With the denominator; a click opens the document where it does, and no model is asked."""
    chat.ask("which documents mention retention?")
    chat.expect_answer("2 of 5 documents mention “retention”:")
    expect(chat.answer.locator("li")).to_have_count(2)
    expect(chat.turn.locator(".notice")).to_have_count(0)
    assert mock_llm.requests == []
    expect(chat.turn.get_by_role("link", name="Show all 2 in the library")).to_have_attribute(
        "href", "/search?q=retention"
    )
    chat.open_source(1)
    expect(chat.page.locator("#passage").first).to_contain_text(re.compile("retention", re.IGNORECASE))
    chat.page.go_back()
    chat.ask("which documents mention zebras?")
    chat.expect_answer("None of the 5 documents here mentions “zebras”.")
    expect(chat.turn.locator(".notice")).to_have_count(0)


def test_without_a_model_there_is_an_outline_and_a_count(
    alone: ServerProcess, open_page: OpenPage, files: list[Path]
) -> None:
    """Word for word, cited, and it says that no model is connected."""
    chat = open_page(alone)
    chat.open()
    chat.has_read(files)
    chat.ask("summarise the storage handbook")
    chat.expect_answer("No model is connected, so this is an outline of Storage handbook")
    expect(chat.answer.locator("li")).to_have_count(CHAPTERS)
    expect(chat.answer.locator("li").last).to_contain_text(f"Chapter {CHAPTERS}: The disks of shelf {CHAPTERS}")
    expect(chat.turn.locator(".notice")).to_have_count(0)
    chat.open_source(CHAPTERS)
    chat.page.go_back()
    chat.ask("how many documents mention retention?")
    chat.expect_answer("2 of 5 documents mention “retention”:")
    chat.is_harmless()


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_and_lists_fit_the_window(
    small: ServerProcess, open_page: OpenPage, files: list[Path], width: int
) -> None:
    """On a phone, too: nothing is wider than the page."""
    chat = open_page(small, width=width)
    chat.open()
    chat.has_read(files)
    for question in ("summarise the storage handbook", "which documents mention retention?"):
        chat.ask(question)
        chat.until_settled()
        chat.has_no_sideways_scroll()
