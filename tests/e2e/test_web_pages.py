"""Web pages in a real browser: added by address, read, asked about, fetched again, kept when they are gone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from app.catalog import load_catalog
from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.library_page import READ_MS, LibraryPage
from tests.page_server import Page, PageServer, article, serving_pages, silent
from tests.server import ServerProcess

SENTENCES = load_catalog()
CRANE = "The harbour crane lifts boats of up to nine tonnes, and is booked with Hilde at the pier."
NEW_CRANE = "The harbour crane lifts boats of up to fourteen tonnes since it was rebuilt, and is booked with Hilde."
PUMP = "The bilge pump of the ferry is tested on the first Monday of each month by two people."


@pytest.fixture(scope="module")
def web() -> Iterator[PageServer]:
    """A wiki on this machine."""
    pages = {
        "/wiki/Crane": Page(article("The crane", CRANE), etag='"1"'),
        "/wiki/Pump": Page(article("The bilge pump", PUMP)),
        "/moved": Page(status=301, headers={"location": "/wiki/Pump"}),
        "/inside": Page(status=302, headers={"location": "http://10.0.0.1/"}),
    }
    with serving_pages(pages) as server:
        yield server


@pytest.fixture(scope="module")
def server(start_server: StartServer) -> ServerProcess:
    """One Docent for the suite, which may fetch from this machine."""
    return start_server(FETCH_ALLOW_CIDRS="127.0.0.0/8")


@pytest.fixture
def library(server: ServerProcess, open_page: OpenPage) -> LibraryPage:
    page = LibraryPage(open_page(server))
    page.open()
    return page


def _dialog(library: LibraryPage) -> Locator:
    library.page.get_by_role("link", name="Add a page", exact=True).click()
    dialog = library.page.get_by_role("dialog")
    expect(dialog.get_by_label("Addresses")).to_be_focused()
    return dialog


def _name(web: PageServer, path: str) -> str:
    return f"127.0.0.1:{web.port}{path}"


def _add(library: LibraryPage, *urls: str) -> None:
    dialog = _dialog(library)
    dialog.get_by_label("Addresses").fill("\n".join(urls))
    dialog.get_by_role("button", name="Fetch", exact=True).click()
    expect(dialog).to_have_count(0)


def test_pages_are_added_by_their_addresses_and_asked_about(library: LibraryPage, web: PageServer) -> None:
    """Several at once; each is a row that says how old it is; the answer's source opens the page's text, from which a
    link leads to the page itself. Nothing but the pages is asked of their server."""
    _add(library, f"{web.url}/wiki/Crane", f"{web.url}/wiki/Pump#test")
    expect(library.page.locator(".toast")).to_contain_text("2 pages are being fetched.")
    for path in ("/wiki/Crane", "/wiki/Pump"):
        library.expect_status(_name(web, path), "Ready")
    expect(library.row(_name(web, "/wiki/Crane"))).to_contain_text("The crane")
    expect(library.row(_name(web, "/wiki/Crane"))).to_contain_text("Fetched just now")
    chat = library.chat
    chat.open()
    chat.ask("How many tonnes may a boat weigh for the harbour crane?")
    chat.expect_answer("nine tonnes")
    chat.open_source(1)
    expect(chat.page.locator(".reader-text")).to_contain_text("booked with Hilde")
    link = chat.page.get_by_role("link", name=f"{web.url}/wiki/Crane")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert {path for path, _ in web.seen} == {"/wiki/Crane", "/wiki/Pump"}
    chat.is_harmless()


def test_a_page_that_changed_is_fetched_again_on_request(library: LibraryPage, web: PageServer) -> None:
    """Unchanged first; then the new text is what is found. Found gone, it is kept and says so; then it is there
    again."""
    name = _name(web, "/wiki/Crane")
    library.choose(name, "Fetch again")
    expect(library.row(name)).to_contain_text("unchanged just now", timeout=READ_MS)
    web.pages["/wiki/Crane"] = Page(article("The crane, rebuilt", NEW_CRANE), etag='"2"')
    library.choose(name, "Fetch again")
    expect(library.row(name)).to_contain_text("The crane, rebuilt", timeout=READ_MS)
    library.expect_status(name, "Ready")
    del web.pages["/wiki/Crane"]
    library.page.get_by_role("button", name="Fetch all again").click()
    gone = library.row(name).locator(".file-reason")
    expect(gone).to_contain_text("The server has no such page any more (noticed just now).", timeout=READ_MS)
    library.expect_status(name, "Ready")
    library.search("fourteen tonnes")
    expect(library.page.locator(".text-hits")).to_contain_text("fourteen")
    web.pages["/wiki/Crane"] = Page(article("The crane, rebuilt", NEW_CRANE), etag='"2"')
    library.search("")
    library.choose(name, "Fetch again")
    expect(gone).to_have_count(0, timeout=READ_MS)
    library.chat.is_harmless()


def test_addresses_that_are_refused_say_why(library: LibraryPage, web: PageServer) -> None:
    """At once in the form, what was typed kept there; or in the row, where only asking shows it."""
    dialog = _dialog(library)
    typed = ["http://192.168.77.1/", "file:///etc/passwd", f"{web.url}/moved"]
    dialog.get_by_label("Addresses").fill("\n".join(typed))
    dialog.get_by_role("button", name="Fetch", exact=True).click()
    problem = dialog.get_by_role("alert")
    expect(problem).to_contain_text(SENTENCES.t("errors.ingest_fetch_private"))
    expect(problem).to_contain_text(SENTENCES.t("errors.ingest_fetch_scheme"))
    expect(dialog.get_by_label("Addresses")).to_have_value("\n".join(typed[:2]))
    dialog.get_by_text("Cancel").click()
    library.expect_status(_name(web, "/moved"), "Ready")
    expect(library.row(_name(web, "/moved"))).to_contain_text("The bilge pump")
    _add(library, f"{web.url}/inside", f"{web.url}/none")
    library.expect_reason(_name(web, "/inside"), SENTENCES.t("errors.ingest_fetch_private"))
    library.expect_reason(_name(web, "/none"), SENTENCES.t("errors.ingest_fetch_not_found"))
    web.pages["/none"] = Page(article("There after all", PUMP))
    library.row(_name(web, "/none")).locator(".file-reason").get_by_role("button", name="Try again").click()
    library.expect_status(_name(web, "/none"), "Ready")
    library.chat.is_harmless()


def test_how_often_is_chosen_in_a_rows_menu(library: LibraryPage, web: PageServer) -> None:
    """The row repeats the choice, without a reload; Escape changes nothing."""
    name = _name(web, "/wiki/Pump")
    library.choose(name, "Fetch regularly…")
    dialog = library.page.get_by_role("dialog")
    expect(dialog.get_by_label("Only when asked")).to_be_checked()
    dialog.get_by_text("Every week").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(library.row(name)).to_contain_text("again every week")
    library.choose(name, "Fetch regularly…")
    expect(dialog.get_by_label("Every week")).to_be_checked()
    library.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_page_is_removed_like_any_document(library: LibraryPage, web: PageServer) -> None:
    """After a question, with its passages."""
    name = _name(web, "/moved")
    library.choose(name, "Remove")
    library.page.get_by_role("button", name="Remove document").click()
    expect(library.row(name)).to_have_count(0)


def test_it_all_fits_a_phone(server: ServerProcess, web: PageServer, open_page: OpenPage) -> None:
    """Long addresses wrap, in rows and in the form; a fetch that goes on shows in its row."""
    library = LibraryPage(open_page(server, width=390, height=780))
    library.open()
    path = "/a-rather-long-path-of-a-page/" + "with-many-words-in-it-" * 4
    web.pages[path] = silent
    _add(library, web.url + path)
    row = library.page.locator(".file", has_text="a-rather-long-pa")
    expect(row.locator(".status")).to_have_text(re.compile("Fetching|Waiting"), timeout=READ_MS)
    library.chat.has_no_sideways_scroll()
    _dialog(library)
    library.chat.has_no_sideways_scroll()
