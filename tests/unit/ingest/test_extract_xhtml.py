"""XHTML: elements closed in place end where they stand, in pages and in the chapters of books."""

from pathlib import Path

import pytest

from app.ingest.extract.html import extract_html
from app.ingest.extract.xhtml import as_html
from tests.unit.ingest.files import read
from tests.unit.ingest.office import book

XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'


@pytest.mark.parametrize("lead", ['<?xml version="1.0"?>', "<!DOCTYPE html>", ""])
@pytest.mark.parametrize("head", ["<title/>", "<title>T</title><script src='x.js'/>", "<style type='text/css' />"])
def test_an_empty_element_of_the_head_does_not_swallow_the_page(lead: str, head: str) -> None:
    """An HTML parser alone takes `<title/>` for open, and everything behind it for the title."""
    page = lead + XHTML.format(head=head, body="<p>Hops need sun.</p>")

    assert extract_html(page.encode()).text == "Hops need sun."


def test_empty_elements_of_the_body_hold_nothing_of_what_follows() -> None:
    """Neither a text field nor a frame hides the rest; a heading closed in place is none; breaks stay breaks."""
    body = '<h1/><p>one<br/>two</p><textarea rows="2"/><iframe src="a/b.html"/><a id="p1"/><p title="x/>y">three</p>'

    assert extract_html(XHTML.format(head="<title/>", body=body).encode()).text == "one\ntwo\n\nthree"


def test_marked_up_text_in_character_data_is_text() -> None:
    """CDATA is what an HTML parser takes for a comment."""
    page = XHTML.format(head="<title/>", body="<p><![CDATA[a < b && c]]></p><pre><![CDATA[<x/>]]></pre>")

    assert extract_html(page.encode()).text == "a < b && c\n\n```\n<x/>\n```"


def test_a_page_that_is_no_xml_is_left_as_it_is() -> None:
    """There a slash before the end means nothing, as browsers have it."""
    assert extract_html(b"<!DOCTYPE html><p>a <b/>c</p>").text == "a c"


def test_a_chapter_with_an_empty_title_is_read(tmp_path: Path) -> None:
    """Programs that make books write `<title/>` into every chapter; the contents page is one of them, too."""
    nav = XHTML.format(head="<title/>", body='<nav><a href="b.xhtml">Named</a></nav>')
    pages = {"nav.xhtml": nav, "b.xhtml": XHTML.format(head="<title/>", body="<p>b</p>")}

    assert read(book(tmp_path / "a.epub", pages)).text == "# Named\n\nb"


@pytest.mark.parametrize("part", ['<a "', "<a '\"", "<![CDATA[", "<a /", '<a b="'])
def test_markup_that_never_ends_is_left_as_it_is(part: str) -> None:
    """However often it is repeated: what begins is looked at once, and not again from each place."""
    assert as_html(part * 200_000) == part * 200_000
