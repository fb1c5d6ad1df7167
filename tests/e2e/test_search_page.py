"""The search page in a real browser: from the side bar to a passage, narrowed and widened again, on a phone too."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, documents: Path) -> ChatPage:
    """A page on a Docent that has read the documents."""
    page = open_page(docent)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    return page


def test_from_the_side_bar_to_the_passage(chat: ChatPage) -> None:
    """By keyboard: the field has the focus, Enter searches, the first hit opens the reader at its passage."""
    page = chat.page
    page.locator(".side-head a.icon-button").click()
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("nightly backup")
    page.keyboard.press("Enter")
    expect(page.locator(".search-hits mark").first).to_be_visible()
    expect(page.locator("#found")).to_contain_text(re.compile(r"\d+ passages, best first\. All the words are in"))
    page.locator(".search-hits a").first.click()
    expect(page.locator("#passage")).to_be_visible()
    chat.is_harmless()


def test_every_document_that_mentions_it_and_back_to_passages(chat: ChatPage) -> None:
    page = chat.page
    page.goto(re.sub(r"(https?://[^/]+).*", r"\1/search?q=backup", page.url))
    page.get_by_role("link", name="All documents that mention it").click()
    expect(page.locator("#found")).to_contain_text(re.compile(r"\d+ of \d+ documents? mentions? “backup”"))
    page.go_back()
    expect(page.locator(".search-hits mark").first).to_be_visible()


def test_a_filter_is_a_chip_that_can_be_taken_out(chat: ChatPage) -> None:
    page = chat.page
    page.goto(re.sub(r"(https?://[^/]+).*", r"\1/search?q=backup&type=markdown&type=pdf", page.url))
    expect(page.locator(".search-chips li")).to_have_count(2)
    page.locator(".search-chips a", has_text="PDF").click()
    expect(page.locator(".search-chips li")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"q=backup&type=markdown$"))


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_scrolls_only_down(chat: ChatPage, width: int) -> None:
    page = chat.page
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(re.sub(r"(https?://[^/]+).*", r"\1/search?q=backup&type=markdown", page.url))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for link in page.locator(".search-chips a, .search-views a").all():
        box = link.bounding_box()
        assert box is not None
        assert box["height"] >= 44
    page.get_by_role("button", name="Narrow down").click()
    for link in page.locator(".search-facets a").all():
        box = link.bounding_box()
        assert box is not None
        assert box["height"] >= 44
