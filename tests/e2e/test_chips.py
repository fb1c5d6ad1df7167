"""Naming documents and collections in a question: suggested while it is written, obeyed when it is asked."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

FILES = {
    "hall router.md": "# Hall router\n\nThe hall router's settings page is on port 4711. It stands in the hall.",
    "attic-router.md": "# Attic router\n\nThe attic router's settings page is on port 4242. It stands in the attic.",
    "garden.md": "# Garden\n\nThe hose is rolled up in October, and the pump is drained.",
    "<b>bold<b>.md": "# Markup\n\nA file whose name looks like markup. It says nothing about routers.",
    "תוכנית.md": "# Plan\n\nA plan whose name is written from right to left.",
}
WHICH = "which port has its settings page?"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Documents that say the same of two things, and names that are hard to show."""
    folder = tmp_path_factory.mktemp("named")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    return sorted(folder.iterdir())


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, files: list[Path]) -> ChatPage:
    """A page on a Docent that has read the documents."""
    page = open_page(docent)
    page.open()
    page.has_read(files)
    return page


def field_of(chat: ChatPage) -> Locator:
    return chat.page.get_by_role("textbox", name="Your question")


def options_of(chat: ChatPage) -> Locator:
    return chat.page.get_by_role("listbox", name="What may be meant").get_by_role("option")


def cited_in(chat: ChatPage) -> set[str]:
    """The documents the last answer rests on."""
    notes = chat.answer.locator(".note").all_inner_texts()
    return {name for name in ("Hall router", "Attic router", "Garden") if any(name in note for note in notes)}


def test_a_document_is_chosen_by_keyboard_and_only_it_is_cited(chat: ChatPage) -> None:
    """`@`, arrows, Enter; the name with a space gets its quotes, Enter then asks, and the chip stands in the line."""
    field = field_of(chat)
    field.press_sequentially("In @router")
    options = options_of(chat)
    expect(options).to_have_count(2)
    expect(field).to_have_attribute("aria-expanded", "true")
    expect(options.first).to_have_attribute("aria-selected", "true")
    chosen = options.filter(has_text="hall router.md")
    while chosen.get_attribute("aria-selected") != "true":
        field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    field.press("Enter")
    expect(field).to_have_value('In @"hall router.md" ')
    expect(options).to_have_count(0)
    expect(field).to_have_attribute("aria-expanded", "false")
    field.press_sequentially(WHICH)
    field.press("Enter")
    chat.expect_answer("4711")
    assert cited_in(chat) == {"Hall router"}
    expect(chat.turn.locator(".given .chip")).to_have_text("hall router.md")
    expect(chat.turn.locator(".question")).to_have_text(f'In @"hall router.md" {WHICH}')
    chat.page.reload()
    expect(chat.turn.locator(".given .chip")).to_have_text("hall router.md")
    chat.is_harmless()


def test_asking_again_and_a_follow_up_stay_with_the_document(chat: ChatPage) -> None:
    """The name is in the text; what leans on the question before is asked of the same, and the chip says so."""
    chat.ask(f"@attic-router.md {WHICH}")
    chat.expect_answer("4242")
    chat.turn.get_by_role("button", name="Ask again").click()
    expect(chat.page.locator(".turn")).to_have_count(2)
    chat.expect_answer("4242")
    assert cited_in(chat) == {"Attic router"}
    chat.ask("And where does it stand?")
    chat.expect_answer("attic")
    chip = chat.turn.locator(".given .chip")
    expect(chip).to_have_text("attic-router.md")
    expect(chip).to_have_attribute("title", "Kept from the question before")


def test_a_collection_is_chosen_with_tab(chat: ChatPage) -> None:
    """`#` lists collections; the answer comes from that one."""
    field = field_of(chat)
    field.press_sequentially("#lib")
    expect(options_of(chat)).to_have_count(1)
    field.press("Tab")
    expect(field).to_have_value("#library ")
    expect(field).to_be_focused()
    field.press_sequentially("Which month is the hose rolled up?")
    field.press("Enter")
    chat.expect_answer("October")
    expect(chat.turn.locator(".given .chip")).to_have_text("Library")


def test_a_name_that_nothing_has_is_said_and_asked_as_text(chat: ChatPage) -> None:
    """A quiet sentence, in the stream and after a reload; an address of mail is no name."""
    chat.ask("When is the hose rolled up, @gardener?")
    chat.expect_answer("October")
    expect(chat.turn.locator(".notice")).to_contain_text("No document is called “gardener”")
    expect(chat.turn.locator(".given .chip")).to_have_count(0)
    chat.page.reload()
    expect(chat.turn.locator(".notice")).to_contain_text("No document is called “gardener”")
    chat.ask("When is the hose of me@garden.md rolled up?")
    chat.until_settled()
    expect(chat.turn.locator(".notice")).to_have_count(0)


def test_escape_closes_the_list_and_typing_on_asks_as_ever(chat: ChatPage) -> None:
    """Neither key does two things at once; a whole name leaves nothing to choose."""
    field = field_of(chat)
    field.press_sequentially("@gard")
    expect(options_of(chat)).to_have_count(1)
    field.press("Escape")
    expect(options_of(chat)).to_have_count(0)
    expect(field).to_have_value("@gard")
    with chat.page.expect_response(re.compile("/ui/chat/suggest")):
        field.press_sequentially("en.md")
    expect(options_of(chat)).to_have_count(0)
    field.press_sequentially(" When is the hose rolled up?")
    field.press("Enter")
    chat.expect_answer("October")


def test_an_answer_that_comes_late_does_not_open_a_closed_list(chat: ChatPage) -> None:
    """The server was asked before Escape; the next letter opens the list as ever."""
    field, held = field_of(chat), list[Route]()
    field.press_sequentially("@gar")
    expect(options_of(chat)).to_have_count(1)
    chat.page.route("**/ui/chat/suggest**", lambda route: route.continue_() if held else held.append(route))
    with chat.page.expect_request(re.compile("/ui/chat/suggest")):
        field.press_sequentially("d")
    field.press("Escape")
    expect(options_of(chat)).to_have_count(0)
    chat.page.evaluate(
        "() => { window.settled = new Promise((done) => addEventListener('htmx:afterSettle', done, { once: true })) }"
    )
    held[0].continue_()
    chat.page.evaluate("() => window.settled.then(() => 0)")
    expect(options_of(chat)).to_have_count(0)
    field.press_sequentially("e")
    expect(options_of(chat)).to_have_count(1)


@pytest.mark.parametrize(
    ("typed", "name", "written"),
    [("@bold", "<b>bold<b>.md", '@"<b>bold<b>.md" '), ("@תוכ", "תוכנית.md", "@תוכנית.md ")],
)
def test_names_of_any_kind_are_shown_as_text(chat: ChatPage, typed: str, name: str, written: str) -> None:
    """Markup in a name is no markup; a name from right to left keeps to itself."""
    field = field_of(chat)
    field.press_sequentially(typed)
    option = options_of(chat).first
    expect(option.locator("bdi").first).to_have_text(name)
    option.click()
    expect(field).to_have_value(written)
    expect(field).to_be_focused()
    field.press_sequentially("What is it?")
    field.press("Enter")
    chat.until_settled()
    expect(chat.turn.locator(".given .chip")).to_have_text(name)
    chat.is_harmless()


def test_on_a_phone_the_list_stands_over_the_field_and_moves_nothing(
    docent: ServerProcess, open_page: OpenPage, files: list[Path]
) -> None:
    """390 px: rows to touch, inside of the window, the field where it was."""
    chat = open_page(docent, width=390, height=844)
    chat.open()
    chat.has_read(files)
    field = field_of(chat)
    field.press_sequentially("@")
    options = options_of(chat)
    expect(options.nth(4)).to_be_visible()
    before = chat.page.locator(".composer-box").bounding_box()
    row = options.first.bounding_box()
    assert before is not None
    assert row is not None
    assert row["height"] >= 44
    assert row["y"] + row["height"] <= before["y"]
    chat.has_no_sideways_scroll()
    options.filter(has_text="garden.md").click()
    expect(field).to_have_value("@garden.md ")
    assert chat.page.locator(".composer-box").bounding_box() == before
    field.press_sequentially("When is the hose rolled up?")
    chat.page.get_by_role("button", name="Ask", exact=True).click()
    chat.expect_answer("October")
    chat.has_no_sideways_scroll()
    expect(chat.turn.locator(".given .chip")).to_be_visible()
