"""The reader in a real browser: from citation to citation by keyboard and button, pages of a PDF, and small screens."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.citing_page import answered, write_documents
from tests.e2e.conftest import OpenPage
from tests.e2e.library_page import LibraryPage, write
from tests.e2e.pages import ChatPage
from tests.png import RULE, WASH, Pixels
from tests.server import ServerProcess


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_documents(tmp_path_factory.mktemp("read"))


@pytest.fixture
def chat(docent: ServerProcess, open_page: OpenPage, files: list[Path]) -> ChatPage:
    return answered(docent, open_page, files)


def open_valve(chat: ChatPage) -> None:
    """Into the reader at the sentence of the PDF's second page."""
    chat.answer.locator(".claim", has_text="opened by hand").first.locator("a.cite").first.click()
    expect(chat.page.locator("#passage")).to_be_visible()


def count(chat: ChatPage) -> tuple[int, int]:
    """Which citation of how many."""
    found = re.search(r"Citation (\d+) of (\d+)", chat.page.locator(".reader-step").inner_text())
    assert found
    return int(found[1]), int(found[2])


def picture(chat: ChatPage) -> Any:
    return chat.page.locator(".reader-page img")


def test_j_and_k_go_through_the_citations_of_all_documents_and_escape_back(chat: ChatPage) -> None:
    """Across documents, to the ends and not beyond, and back to the numeral that was last looked at."""
    chat.answer.locator("a.cite[data-n]").first.click()
    expect(chat.page.locator(".reader-step")).to_be_visible()
    at, of = count(chat)
    while at > 1:
        chat.page.keyboard.press("k")
        expect(chat.page.locator(".reader-step")).to_contain_text(f"Citation {at - 1} of {of}")
        at -= 1
    titles = {chat.page.locator(".reader-what").inner_text()}
    while at < of:
        chat.page.keyboard.press("j")
        at += 1
        expect(chat.page.locator(".reader-step")).to_contain_text(f"Citation {at} of {of}")
        titles.add(chat.page.locator(".reader-what").inner_text())
    assert len(titles) >= 3
    expect(chat.page.get_by_role("link", name="Next citation")).to_have_count(0)
    chat.page.get_by_role("link", name="Previous citation").click()
    expect(chat.page.locator(".reader-step")).to_contain_text(f"Citation {of - 1} of {of}")
    n = int(re.search(r"[?&]n=(\d+)", chat.page.url)[1])  # type: ignore[index]
    chat.page.keyboard.press("Escape")
    expect(chat.page).to_have_url(re.compile(rf"/chats/\d+#c-[\w-]+-{n}$"))
    expect(chat.page.locator("a.cite:target")).to_be_in_viewport()
    chat.is_harmless()


def test_a_citation_of_a_pdf_is_boxed_on_its_page(chat: ChatPage) -> None:
    """At the page of the sentence: with its size before it comes, box and tint; the page before is a link away."""
    open_valve(chat)
    chat.page.get_by_role("link", name="Page", exact=True).click()
    image = picture(chat)
    expect(image).to_have_attribute("alt", "Page 2 of 2 of pump.pdf, the passage boxed")
    chat.page.wait_for_function("document.querySelector('.reader-page img').complete")
    natural = image.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert natural == [int(image.get_attribute("width")), int(image.get_attribute("height"))]
    reply = chat.page.request.get(image.get_attribute("src"))
    pixels = Pixels(reply.body())
    scale = pixels.height / 842
    left, top, right, bottom = pixels.extent(WASH) or (0, 0, 0, 0)
    assert 55 * scale < left < 65 * scale
    assert (842 - 716) * scale < top < bottom < (842 - 690) * scale
    assert right < 560 * scale
    assert pixels.extent(RULE)
    expect(chat.page.locator(".reader-said mark").first).to_contain_text("The valve")
    chat.page.get_by_role("link", name="Previous page").click()
    expect(image).to_have_attribute("alt", "Page 1 of 2 of pump.pdf, the passage boxed")
    chat.page.get_by_role("link", name="Text", exact=True).click()
    expect(chat.page.locator("#passage mark").first).to_be_visible()
    chat.is_harmless()


def test_the_page_view_stays_from_citation_to_citation(chat: ChatPage) -> None:
    """Documents without pages show their text in between; a PDF is seen as its page again."""
    open_valve(chat)
    chat.page.get_by_role("link", name="Page", exact=True).click()
    at, of = count(chat)
    step, back = ("j", "k") if at < of else ("k", "j")
    chat.page.keyboard.press(step)
    expect(chat.page.locator(".reader-step")).not_to_contain_text(f"Citation {at} of")
    chat.page.keyboard.press(back)
    expect(picture(chat)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_view_fits_a_phone(docent: ServerProcess, open_page: OpenPage, files: list[Path], theme: str) -> None:
    """The picture takes the column's width, in both themes, and nothing scrolls sideways."""
    chat = answered(docent, open_page, files, width=390, height=844)
    chat.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    chat.answer.locator(".claim", has_text="opened by hand").first.locator("a.cite").first.click()
    chat.page.locator("#sheet").get_by_role("link", name="Open in reader").click()
    chat.page.get_by_role("link", name="Page", exact=True).click()
    expect(picture(chat)).to_be_visible()
    box = picture(chat).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    chat.has_no_sideways_scroll()


def test_a_long_path_gives_way_before_the_way_back_does_on_a_phone(
    docent: ServerProcess, open_page: OpenPage, files: list[Path], tmp_path: Path
) -> None:
    """The link to the library is read whole; the path is cut."""
    chat = answered(docent, open_page, files, width=390, height=844)
    library = LibraryPage(chat)
    library.open()
    name = "a-very-long-name-of-a-file-that-no-phone-shows-on-one-line-" * 3 + ".md"
    library.add([write(tmp_path, name, "# Hinges\n\nOil them in spring.\n")])
    chat.page.locator(".file a", has_text="a-very-long-name").first.click()
    back, what = chat.page.locator(".reader-back"), chat.page.locator(".reader-what")
    expect(back).to_contain_text("Library")
    assert back.evaluate("link => link.scrollWidth <= link.clientWidth")
    assert what.evaluate("line => line.scrollWidth > line.clientWidth")
    chat.has_no_sideways_scroll()


def test_a_removed_document_keeps_its_quote_and_the_way_on(
    docent: ServerProcess, open_page: OpenPage, tmp_path: Path
) -> None:
    """Between two documents, one is gone: its words stand there, and j leads on."""
    chat = answered(docent, open_page, write_documents(tmp_path))
    rows = chat.page.request.get("/api/documents?limit=200").json()["documents"]
    mail = next(row["id"] for row in rows if row["path"] == "pump.eml")
    href = chat.answer.locator(".claim", has_text="green key").first.locator("a.cite").first.get_attribute("href")
    assert href is not None
    chat.page.request.delete(f"/api/documents/{mail}", headers={"Origin": docent.url})
    chat.open(href)
    expect(chat.page.get_by_text("This document was removed.")).to_be_visible()
    expect(chat.page.locator("blockquote")).to_contain_text("green key")
    at, of = count(chat)
    chat.page.keyboard.press("j" if at < of else "k")
    expect(chat.page.locator("#passage")).to_be_visible()
