"""Marks and the evaluation in a real browser: from an answer to figures, and back."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

BACKUP = "When does the nightly backup job start?"
VPN = "On which port does the VPN listen?"
BREAD = "Which sourdough recipe needs the longest fermentation?"


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path) -> ChatPage:
    """A page on a Docent that has read the documents and is connected to the mock model."""
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def button(place: Locator, name: str) -> Locator:
    return place.get_by_role("button", name=name, exact=True)


def is_pressed(place: Locator, pressed: bool = True) -> None:
    expect(place).to_have_attribute("aria-pressed", "true" if pressed else "false")


def ask(chat: ChatPage, question: str) -> None:
    chat.open()
    chat.ask(question)
    chat.until_settled()


def saved(page: Page) -> Locator:
    return page.locator(".eval-question")


def test_an_answer_is_marked_and_the_mark_stays(chat: ChatPage) -> None:
    """Helpful saves the question with what is cited; a reload keeps both; a second press takes both back."""
    ask(chat, BACKUP)
    button(chat.turn, "Helpful").click()
    is_pressed(button(chat.turn, "Helpful"))
    expect(chat.turn).to_contain_text("Saved for the evaluation")
    chat.page.reload()
    is_pressed(button(chat.turn, "Helpful"))
    button(chat.turn, "Undo").click()
    is_pressed(button(chat.turn, "Helpful"), False)
    expect(chat.turn).not_to_contain_text("Saved for the evaluation")
    button(chat.turn, "Not helpful").focus()
    chat.page.keyboard.press("Enter")
    is_pressed(button(chat.turn, "Not helpful"))
    expect(button(chat.turn, "Not helpful")).to_be_focused()
    chat.turn.get_by_role("textbox", name="What was wrong").fill("Too short")
    button(chat.turn, "Save").click()
    expect(chat.turn.get_by_role("textbox", name="What was wrong")).to_have_value("Too short")
    button(chat.turn, "Not helpful").click()
    is_pressed(button(chat.turn, "Not helpful"), False)
    chat.is_harmless()


def test_a_passage_is_marked_in_the_reader_and_below_the_answer(chat: ChatPage) -> None:
    """Both say the same; marked by hand it outlives the verdict."""
    ask(chat, VPN)
    chat.open_source(int(chat.answer.locator("a.cite").first.inner_text()))
    right = chat.page.get_by_role("button", name="This passage was right")
    right.click()
    is_pressed(right)
    expect(chat.page.locator("#reader-right")).to_contain_text("Saved for the evaluation")
    chat.page.get_by_role("link", name="Back to the answer").click()
    chat.turn.get_by_text("Which passage was right?").click()
    is_pressed(chat.turn.get_by_role("button", name=re.compile("This passage was right")).first)
    chat.is_harmless()


def test_from_marks_to_figures_and_a_comparison(chat: ChatPage) -> None:
    """Ask, mark, run, see the figures with their denominators; compare with a threshold of nothing; remove with
    undo."""
    ask(chat, BACKUP)
    button(chat.turn, "Helpful").click()
    is_pressed(button(chat.turn, "Helpful"))
    ask(chat, BREAD)
    chat.turn.get_by_text("Which passage was right?").click()
    button(chat.turn, "The documents don't say").click()
    is_pressed(button(chat.turn, "The documents don't say"))
    page = chat.page
    chat.open("/queries")
    page.get_by_role("link", name="Evaluation").click()
    expect(saved(page).filter(has_text=BACKUP)).to_be_visible()
    count = saved(page).count()
    button(page.locator("main"), "Run").click()
    figures = page.get_by_role("table", name="Figures of the run")
    expect(figures).to_contain_text(re.compile(r"Right passage given to the model\s*1\.00 \d of \d"), timeout=30_000)
    page.get_by_text("Compare with other settings").click()
    page.get_by_label("Score a passage needs").fill("0")
    button(page.locator("main"), "Run").click()
    expect(figures).to_contain_text("Difference", timeout=30_000)
    expect(page.locator(".eval-differences")).to_contain_text(BREAD)
    expect(page.locator(".eval-runs tbody tr")).to_have_count(2)
    row = saved(page).filter(has_text=BREAD)
    button(row, "Remove").click()
    expect(row).to_have_count(0)
    button(page.locator("#toasts"), "Undo").click()
    expect(row).to_be_visible()
    expect(saved(page)).to_have_count(count)
    row.get_by_text("Edit", exact=True).click()
    row.get_by_role("textbox").fill(f"{BREAD} Really?")
    button(row, "Save").click()
    expect(saved(page).filter(has_text="Really?")).to_be_visible()
    chat.is_harmless()


def test_it_fits_a_phone(chat: ChatPage, docent: ServerProcess, open_page: OpenPage) -> None:
    """No sideways scroll, in the chat and on the page, with a result shown."""
    ask(chat, VPN)
    chat_url = chat.page.url
    phone = open_page(docent, width=390, height=800)
    phone.open(chat_url)
    button(phone.turn, "Not helpful").click()
    expect(phone.turn.get_by_role("button", name=re.compile("This passage was right")).first).to_be_visible()
    phone.has_no_sideways_scroll()
    phone.turn.get_by_role("button", name=re.compile("This passage was right")).first.click()
    expect(phone.turn).to_contain_text("Saved for the evaluation")
    phone.open("/evaluation")
    phone.page.get_by_text("Compare with other settings").click()
    phone.page.get_by_label("Search by words only").check()
    button(phone.page.locator("main"), "Run").click()
    expect(phone.page.locator("#result")).to_contain_text(
        "B: RETRIEVAL_TOP_K 12, RETRIEVAL_MIN_SCORE 0.35, words only", timeout=30_000
    )
    phone.has_no_sideways_scroll()
    phone.is_harmless()
