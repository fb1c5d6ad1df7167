"""Citations in a real browser: what a model cites rightly, wrongly, falsely and not at all, and what can be saved."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.citing_page import answered, numeral_of, write_documents
from tests.e2e.conftest import OpenPage
from tests.e2e.mock_citing import INVENTED, UNCITED, UNSAID
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_documents(tmp_path_factory.mktemp("cited"))


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, files: list[Path]) -> ChatPage:
    return answered(docent, open_page, files)


def test_invented_markers_are_not_shown_and_the_rest_is_marked(chat: ChatPage) -> None:
    """No numeral without a passage; a sentence that its passage does not back, and one without a source, say so."""
    given = int(chat.answer.locator("a.cite").last.evaluate("link => link.dataset.n"))
    numbers = [int(text) for text in chat.answer.locator("a.cite").all_inner_texts()]
    assert numbers
    assert INVENTED not in numbers
    assert given in numbers
    expect(chat.answer).not_to_contain_text(f"[{INVENTED}]")
    expect(chat.answer.locator(".unbacked", has_text=UNCITED)).to_have_attribute("title", re.compile("No passage"))
    expect(chat.answer.locator(".said.unbacked", has_text=UNSAID)).to_have_attribute(
        "title", re.compile("cited passage")
    )
    expect(chat.answer.locator(".said:not(.unbacked)", has_text="opened by hand")).to_have_count(1)
    chat.is_harmless()


def test_right_markers_lead_to_their_sentence_in_every_document(chat: ChatPage) -> None:
    """Note, mail and PDF: the sentence of the answer is the one marked in the document."""
    for words in ("opened by hand", "green key", "first time in March"):
        n = numeral_of(chat, words)
        with chat.page.expect_navigation():
            chat.answer.locator(".claim", has_text=words).first.locator("a.cite").first.click()
        assert f"n={n}" in chat.page.url
        expect(chat.page.locator("#passage mark").first).to_be_visible()
        marked = " ".join(chat.page.locator("#passage mark").all_inner_texts())
        assert words in " ".join(marked.split())
        chat.page.go_back()
        expect(chat.answer).to_be_visible()


def test_a_copied_answer_keeps_its_sources(chat: ChatPage) -> None:
    """The text on the clipboard ends with the list of what it cites; no invented number is in it."""
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.turn.get_by_role("button", name="Copy", exact=True).first.click()
    copied = chat.page.evaluate("navigator.clipboard.readText()")
    n = numeral_of(chat, "opened by hand")
    assert f"opened by hand before it is started again [{n}]" in copied
    assert re.search(rf"^\[{n}\] .*pump\.pdf, p\. 1$", copied, re.MULTILINE)
    assert f"[{INVENTED}]" not in copied


def test_an_answer_and_its_chat_are_saved_with_footnotes(chat: ChatPage) -> None:
    """Behind "More" under the answer, and in the chat's menu: a file named after the question."""
    chat.turn.locator(".actions summary").click()
    with chat.page.expect_download() as saved:
        chat.turn.get_by_role("link", name="Export").click()
    assert saved.value.suggested_filename == "How is the cellar pump started e2e-cite.md"
    text = Path(saved.value.path()).read_text("utf-8")
    assert re.search(r"opened by hand before it is started again \[\^\d\]", text)
    assert re.search(r"^\[\^\d\]: \*\*.*`pump\.pdf, p\. 1`\. “The valve of the cellar pump", text, re.MULTILINE)
    assert f"{INVENTED}]" not in text
    row = chat.page.locator("#chats .chat-row:has(a[aria-current=page])")
    row.locator("summary").click()
    with chat.page.expect_download() as whole:
        row.get_by_role("link", name="Export").click()
    assert "## How is the cellar pump started? e2e-cite" in Path(whole.value.path()).read_text("utf-8")


@pytest.mark.parametrize("width", [1280, 1000, 390])
def test_the_actions_stand_on_few_lines_and_the_rest_behind_more(
    docent: ServerProcess, open_page: OpenPage, files: list[Path], width: int
) -> None:
    """One line where there is room, even in a wide face; "More" opens and closes by keyboard and keeps the focus."""
    chat = answered(docent, open_page, files, width=width)
    tops = "(row) => new Set([...row.querySelectorAll('.button')].map((one) => one.getBoundingClientRect().top)).size"
    assert chat.turn.locator(".actions").evaluate(tops) <= (1 if width >= 1000 else 3)
    more = chat.turn.locator(".actions summary")
    more.press("Enter")
    expect(chat.turn.get_by_role("button", name="Answer without documents")).to_be_visible()
    chat.has_no_sideways_scroll()
    chat.page.keyboard.press("Tab")
    expect(chat.turn.get_by_role("link", name="Export")).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.turn.get_by_role("link", name="Export")).to_be_hidden()
    expect(more).to_be_focused()


def test_on_a_phone_a_numeral_opens_the_sheet(docent: ServerProcess, open_page: OpenPage, files: list[Path]) -> None:
    """Title, place and the marked words; from there into the reader."""
    chat = answered(docent, open_page, files, width=390, height=844)
    n = numeral_of(chat, "opened by hand")
    chat.answer.locator(".claim", has_text="opened by hand").first.locator("a.cite").first.click()
    sheet = chat.page.locator("#sheet")
    expect(sheet).to_be_visible()
    expect(sheet.locator(".sheet-n")).to_have_text(str(n))
    expect(sheet.locator(".sheet-where")).to_contain_text("pump.pdf, p. 1")
    expect(sheet.locator("mark").first).to_be_visible()
    chat.has_no_sideways_scroll()
    sheet.get_by_role("link", name="Open in reader").click()
    expect(chat.page.locator("#passage mark").first).to_be_visible()
    chat.has_no_sideways_scroll()
