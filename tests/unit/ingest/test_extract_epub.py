"""E-books: chapters in reading order under their headings, without what is no text of the book."""

from pathlib import Path

import pytest

from tests.unit.ingest.files import read, reason_of
from tests.unit.ingest.office import book, zipped

LOCK = (
    '<encryption xmlns="urn:o"><e:EncryptedData xmlns:e="urn:e"><e:CipherData>'
    '<e:CipherReference URI="{part}"/></e:CipherData></e:EncryptedData></encryption>'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.epub"


def page(body: str, attributes: str = "") -> str:
    return (
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops"><head><title>no</title></head>'
        f"<body {attributes}>{body}</body></html>"
    )


def test_chapters_come_in_the_order_of_reading(path: Path) -> None:
    """Found by content; the order is the spine's and not that of the archive; the title is the metadata's."""
    extraction = read(
        book(path, {"z.xhtml": page("<h1>One</h1><p>first</p>"), "a.xhtml": page("<h2>Two</h2><p>é")}), "x"
    )

    assert extraction.text == "# One\n\nfirst\n\n## Two\n\né"
    assert (extraction.title, extraction.mime, extraction.pages) == ("The book", "application/epub+zip", None)


def test_contents_pages_and_covers_are_left_out(path: Path) -> None:
    """A navigation page, one that calls itself a contents page or a cover, and one of nothing but a picture."""
    pages = {
        "cover.xhtml": page("<p>Cover art</p>", 'epub:type="cover"'),
        "pic.xhtml": page('<img src="x.png"/>'),
        "nav.xhtml": page('<nav epub:type="toc"><a href="c.xhtml#a">From the nav</a></nav>'),
        "toc.xhtml": page('<section epub:type="toc"><a href="c.xhtml">One</a></section>'),
        "c.xhtml": page("<p>words</p>"),
    }

    assert read(book(path, pages)).text == "# From the nav\n\nwords"


def test_a_chapter_without_a_heading_gets_its_name_from_the_contents(path: Path) -> None:
    """Of an old book's NCX; one that has a heading keeps its own."""
    points = "".join(
        f"<navPoint><navLabel><text>{name}</text></navLabel><content src='{to}'/></navPoint>"
        for name, to in (("Named", "b.xhtml#x"), ("Not used", "c.xhtml"))
    )
    contents = f'<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "a" "b"><ncx xmlns="urn:n"><navMap>{points}</navMap></ncx>'
    made = book(path, {"b.xhtml": page("<p>b"), "c.xhtml": page("<h1>Own</h1><p>c")}, contents=contents)

    assert read(made).text == "# Named\n\nb\n\n# Own\n\nc"


def test_books_with_a_lock_are_encrypted_and_locked_fonts_are_not(path: Path) -> None:
    """A lock on a chapter is one; most books with hidden fonts are free."""
    pages = {"a.xhtml": page("<p>x")}

    assert (
        reason_of(book(path, pages, **{"META-INF/encryption.xml": LOCK.format(part="in%20side/a.xhtml")}))
        == "encrypted"
    )
    assert read(book(path, pages, **{"META-INF/encryption.xml": LOCK.format(part="fonts/a.otf")})).text == "x"


def test_broken_books_are_refused(path: Path) -> None:
    """No list of parts, entities in it, a chapter nested beyond reason, too many chapters, no text at all."""
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><package>&b;</package>'

    assert reason_of(zipped(path, {"META-INF/container.xml": "<container/>"})) == "corrupt"
    assert reason_of(zipped(path, {"META-INF/container.xml": "<container"})) == "corrupt"
    assert reason_of(book(path, {"a.xhtml": page("x")}, **{"in side/book.opf": laughs})) == "corrupt"
    assert reason_of(book(path, {"a.xhtml": page("<div>" * 5_000)})) == "corrupt"
    assert reason_of(book(path, {"a.xhtml": page("")})) == "no_text"
    chapters = '<itemref idref="a"/>' * 5_001
    item = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    many = f"<package><manifest>{item}</manifest><spine>{chapters}</spine></package>"
    assert reason_of(book(path, {"a.xhtml": page("x")}, **{"in side/book.opf": many})) == "too_long"
