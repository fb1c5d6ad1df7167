"""The chat in a real browser: from an empty page to a cited answer, and every way that can go wrong."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess, free_port

BACKUP = "When does the nightly backup job start?"


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path) -> ChatPage:
    """A page on a Docent that has read the documents and is connected to the mock model."""
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def test_from_an_empty_page_to_a_cited_answer_and_its_passage(
    start_server: StartServer, mock_llm: MockLlm, open_page: OpenPage, documents: Path
) -> None:
    """Upload on the first-run page, ask, read the answer with its note, open the passage in its document."""
    chat = open_page(start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model"))
    chat.open()
    expect(chat.page.get_by_role("textbox", name="Your question")).to_be_disabled()
    chat.upload(sorted(documents.iterdir()))
    chat.ask(BACKUP)
    chat.expect_answer("starts at 02:00")
    expect(chat.answer.locator(".note").first).to_contain_text("Backup plan")
    expect(chat.page).to_have_url(re.compile(r"/chats/\d+$"))
    expect(chat.page.locator("#spoken")).to_contain_text("Answer ready")
    chat.open_source(int(chat.answer.locator("a.cite").first.inner_text()))
    expect(chat.page.locator("#passage")).to_contain_text("starts at 02:00")
    expect(chat.page.locator("#passage mark").first).to_be_visible()
    chat.is_harmless()


def test_the_answer_is_the_same_after_a_reload(chat: ChatPage) -> None:
    """Live and stored answers are one rendering; the question names the chat in the side bar."""
    chat.ask(BACKUP)
    chat.until_settled()
    live = chat.answer.inner_html()
    chat.page.reload()
    assert chat.answer.inner_html() == live
    expect(chat.page.locator("#chats").get_by_role("link", name=BACKUP)).to_be_visible()


def test_text_streams_in_with_numerals_and_a_list_of_what_was_found(chat: ChatPage) -> None:
    """While the model writes, the rail lists the passages, and Stop stands where Ask was."""
    chat.ask("e2e-slow: when does the nightly backup job start?")
    expect(chat.turn).to_have_attribute("aria-busy", "true")
    expect(chat.turn.locator(".found li").first).to_be_visible()
    expect(chat.answer).to_contain_text("word 3")
    expect(chat.page.get_by_role("button", name="Stop")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Ask", exact=True)).to_be_hidden()


def test_stop_keeps_what_arrived_and_offers_to_continue(chat: ChatPage) -> None:
    """Stop ends the turn at once; the text stays, after a reload too."""
    chat.ask("e2e-slow: when does the nightly backup job start?")
    expect(chat.answer).to_contain_text("word 3")
    chat.stop()
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped. What arrived is kept.")
    expect(chat.answer).to_contain_text("word 3")
    expect(chat.turn.get_by_role("button", name="Continue")).to_be_visible()
    chat.page.reload()
    expect(chat.answer).to_contain_text("word 3")
    expect(chat.page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_escape_stops_too(chat: ChatPage) -> None:
    """The key that the hint names."""
    chat.ask("e2e-silent: when does the nightly backup job start?")
    expect(chat.turn.locator(".found li").first).to_be_visible()
    chat.page.keyboard.press("Escape")
    chat.until_settled()
    expect(chat.turn).to_contain_text("Stopped")


def test_a_reload_in_the_middle_of_an_answer_picks_it_up(chat: ChatPage) -> None:
    """The turn goes on without the page; a new page replays what it missed and follows."""
    chat.ask("e2e-slow: when does the nightly backup job start?")
    expect(chat.answer).to_contain_text("word 3")
    chat.page.reload()
    expect(chat.turn).to_have_attribute("aria-busy", "true")
    expect(chat.answer).to_contain_text("Slowly, word 1 word 2")
    expect(chat.answer).to_contain_text("word 12 ")
    chat.stop()
    chat.until_settled()


def test_a_question_the_documents_do_not_answer_is_deflected(chat: ChatPage) -> None:
    """The nearest passages are shown with their scores; asking without documents is one click."""
    chat.ask("Which sourdough recipe needs the longest fermentation?")
    chat.expect_answer("nothing about that")
    expect(chat.turn.locator(".nearest tr").first).to_be_visible()
    expect(chat.turn).to_contain_text("where Docent starts to trust")
    expect(chat.answer.locator("a.cite")).to_have_count(0)
    chat.turn.get_by_role("button", name="Answer without documents").click()
    expect(chat.page.locator(".turn")).to_have_count(2)
    chat.expect_answer("This is an answer without documents")
    expect(chat.turn).to_contain_text("answered without documents")


def test_without_a_model_the_documents_are_quoted(
    start_server: StartServer, open_page: OpenPage, documents: Path
) -> None:
    """No endpoint at all: an honest answer with citations."""
    page = open_page(start_server())
    page.open()
    page.upload(sorted(documents.iterdir()))
    page.ask(BACKUP)
    page.expect_answer("starts at 02:00")
    expect(page.answer).to_contain_text("No model is connected")
    page.open_source(int(page.answer.locator("a.cite").first.inner_text()))
    expect(page.page.locator("#passage")).to_contain_text("02:00")


def test_an_endpoint_that_is_down_says_so_and_keeps_the_question(
    start_server: StartServer, open_page: OpenPage, documents: Path
) -> None:
    """The sentence names the address; Try again asks the same question again."""
    port = free_port()
    page = open_page(start_server(LLM_BASE_URL=f"http://127.0.0.1:{port}/v1", LLM_MODEL="m", LLM_RETRY_MAX="0"))
    page.open()
    page.upload(sorted(documents.iterdir()))
    page.ask(BACKUP)
    page.expect_error(f"Nothing answers at 127.0.0.1:{port}")
    page.turn.get_by_role("button", name="Try again").click()
    expect(page.page.locator(".turn")).to_have_count(2)
    page.expect_error("Nothing answers")


def test_a_connection_that_breaks_keeps_what_arrived(chat: ChatPage) -> None:
    """The text stays above the sentence that says what happened."""
    chat.ask("e2e-drop: when does the nightly backup job start?")
    chat.expect_error("The answer broke off. What arrived is kept.")
    expect(chat.answer).to_contain_text("The beginning of an answer")


def test_a_busy_server_is_asked_again(chat: ChatPage) -> None:
    """One 503 costs a moment, not the answer."""
    chat.ask("e2e-503-once: when does the nightly backup job start?")
    chat.expect_answer("starts at 02:00")


def test_markup_in_a_servers_error_never_reaches_the_page(chat: ChatPage) -> None:
    """A 500 that quotes raw markup shows Docent's own sentence."""
    chat.ask("e2e-500-markup: when does the nightly backup job start?")
    chat.until_settled()
    expect(chat.turn.get_by_role("alert")).to_be_visible()
    assert "tool_call" not in chat.page.content()
    chat.never_shows("<|channel|>")
    chat.is_harmless()


def test_a_hostile_markdown_answer_runs_nothing_and_loads_nothing(chat: ChatPage) -> None:
    """Live and settled: tables and code are set, the script link is dead, the image is its description."""
    chat.ask("e2e-md: when does the nightly backup job start?")
    chat.expect_answer("The last paragraph stands here")
    expect(chat.answer.locator("table")).to_be_visible()
    expect(chat.answer.locator("pre")).to_contain_text('echo "<b>not bold</b>"')
    expect(chat.answer.locator("img")).to_have_count(0)
    expect(chat.answer.get_by_role("link", name="hostile one")).to_have_count(0)
    assert chat.answer.get_by_role("link", name="good link").get_attribute("rel") == "noopener noreferrer nofollow"
    expect(chat.answer.get_by_role("button", name="Copy")).to_be_visible()
    chat.is_harmless()


def test_thinking_is_folded_and_opens_on_demand(chat: ChatPage) -> None:
    """Reasoning is there for who wants it."""
    chat.ask("e2e-think: when does the nightly backup job start?")
    chat.expect_answer("starts at 02:00")
    fold = chat.turn.locator("details.thinking")
    expect(fold.locator(".fold-text")).to_be_hidden()
    fold.locator("summary").click()
    expect(fold.locator(".fold-text")).to_contain_text("the first one says it")


def test_everything_is_reached_by_keyboard(chat: ChatPage) -> None:
    """Tab leads from the numeral to its note and on; Enter opens the source."""
    chat.ask(BACKUP)
    chat.until_settled()
    numeral = chat.answer.locator("a.cite").first
    numeral.focus()
    said = chat.answer.locator(".said").first
    assert said.evaluate("(element) => getComputedStyle(element).backgroundColor") != "rgba(0, 0, 0, 0)"
    assert numeral.evaluate("(element) => getComputedStyle(element).outlineStyle") == "solid"
    chat.page.keyboard.press("Tab")
    assert chat.page.evaluate("document.activeElement.className") == "note-title"
    numeral.press("Enter")
    expect(chat.page.locator("#passage")).to_be_visible()


def test_shift_enter_makes_a_new_line(chat: ChatPage) -> None:
    """Enter alone asks."""
    field = chat.page.get_by_role("textbox", name="Your question")
    field.fill("one")
    field.press("Shift+Enter")
    chat.page.keyboard.type("two")
    expect(field).to_have_value("one\ntwo")
    expect(chat.page.locator(".turn")).to_have_count(0)


def test_on_a_phone_a_numeral_opens_its_source_as_a_sheet(
    docent: ServerProcess, open_page: OpenPage, documents: Path
) -> None:
    """390 px: no rail; the sheet shows the passage, steps through the sources, and gives the focus back."""
    page = open_page(docent, width=390, height=844)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    page.ask(BACKUP)
    page.expect_answer("starts at 02:00")
    page.has_no_sideways_scroll()
    expect(page.answer.locator(".note").first).to_be_hidden()
    numeral = page.answer.locator("a.cite").first
    numeral.click()
    sheet = page.page.get_by_role("dialog")
    expect(sheet).to_be_visible()
    expect(sheet.locator("mark").first).to_be_visible()
    expect(sheet.get_by_role("link", name="Open in reader")).to_have_attribute("href", re.compile("/documents/"))
    page.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(numeral).to_be_focused()
    page.is_harmless()


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1280, 1600])
def test_no_width_scrolls_sideways(docent: ServerProcess, open_page: OpenPage, documents: Path, width: int) -> None:
    """First run and an answer with code and a table fit every window."""
    page = open_page(docent, width=width)
    page.open()
    page.has_no_sideways_scroll()
    page.has_read(sorted(documents.iterdir()))
    page.ask("e2e-md: when does the nightly backup job start?")
    page.expect_answer("The last paragraph")
    page.has_no_sideways_scroll()


def test_nothing_moves_when_the_answer_is_done(chat: ChatPage) -> None:
    """The first paragraph and the composer stand where they stood while it streamed."""
    chat.ask("e2e-slow: when does the nightly backup job start?")
    expect(chat.answer).to_contain_text("word 5")
    where = (
        "() => ['.answer p', '.question', '.composer'].map((s) => document.querySelector(s).getBoundingClientRect().y)"
    )
    before = chat.page.evaluate(where)
    chat.stop()
    chat.until_settled()
    assert chat.page.evaluate(where) == before


def test_a_chat_is_renamed_and_deleted_from_the_side_bar(chat: ChatPage) -> None:
    """Rename in place; delete asks first and leads to a new chat."""
    chat.ask(BACKUP)
    chat.until_settled()
    row = chat.page.locator("#chats .chat-row").first
    row.locator("summary").click()
    row.get_by_role("button", name="Rename").click()
    field = chat.page.get_by_role("textbox", name="Rename")
    field.fill("Backups at night")
    field.press("Enter")
    expect(chat.page.locator("#chats").get_by_role("link", name="Backups at night")).to_be_visible()
    row.locator("summary").click()
    row.get_by_role("button", name="Delete").click()
    dialog = chat.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete “Backups at night”?")
    dialog.get_by_role("button", name="Delete chat").click()
    expect(chat.page).to_have_url(re.compile(r"/$"))
    expect(chat.page.locator("#chats").get_by_role("link", name="Backups at night")).to_have_count(0)


def test_an_answer_is_copied_with_its_sources(chat: ChatPage) -> None:
    """Markdown with markers, and below it what they stand for."""
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.ask(BACKUP)
    chat.until_settled()
    chat.turn.get_by_role("button", name="Copy").click()
    expect(chat.turn.get_by_role("button", name="Copied")).to_be_visible()
    copied = chat.page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"02:00.*\[\d\]", copied)
    assert re.search(r"\n\[\d\] Backup plan, backup-plan\.md:\d", copied)


def test_a_file_that_cannot_be_taken_says_why(chat: ChatPage, tmp_path: Path) -> None:
    """The sentence stands at the composer; the good file beside it is added."""
    bad, good = tmp_path / "empty.md", tmp_path / "good.md"
    bad.write_bytes(b"")
    good.write_text("# Good\n\nThis one holds a sentence about the garden hose.", "utf-8")
    chat.page.locator("input[data-upload]").first.set_input_files([bad, good])
    chat.until_searchable(3)
    expect(chat.page.locator("#composer-say")).to_contain_text("added")
