"""Electronic books: the chapters in reading order, each under its heading, without contents pages and covers.

Called by `dispatch` in the extraction child. A chapter is HTML and goes the way of every page; what has no heading of
its own gets the one that the book's contents give it.
"""

import posixpath
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from selectolax.lexbor import LexborHTMLParser

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.decode import decode
from app.ingest.extract.found import Found, assembled, heading
from app.ingest.extract.html import content_of, declared_encoding
from app.ingest.extract.package import Package, attribute, child, open_package, resolved, under
from app.ingest.extract.zip_guard import Source

MIME = "application/epub+zip"
MAX_CHAPTERS = 5_000

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
_BESIDE = frozenset({"toc", "landmarks", "page-list", "cover", "lot", "loi"})
"""What a page says it is when it holds no text of the book."""


class _Item(NamedTuple):
    """An entry of the book's list of parts."""

    part: str
    mime: str
    properties: frozenset[str]


def extract_epub(source: Source) -> Extraction:
    """Reads a book. Title: the one in its metadata.

    Raises:
        IngestError: corrupt, encrypted (sold with a lock), no_text, or too_long for a bomb or too many chapters.
    """
    with open_package(source, document_types=True) as package:
        root = child(package.tree(_CONTAINER), "rootfiles", "rootfile")
        if root is None:
            raise IngestError("corrupt")
        book = package.tree(attribute(root, "full-path"))
        folder = posixpath.dirname(attribute(root, "full-path"))
        items = {attribute(item, "id"): _item(folder, item) for item in under(book, "item")}
        order = [items.get(attribute(entry, "idref")) for entry in under(book, "itemref")]
        chapters = [item for item in order if item and item.mime in _PAGES and item.part in package.names]
        if len(chapters) > MAX_CHAPTERS:
            raise IngestError("too_long")
        if _locked(package) & {item.part for item in chapters}:
            raise IngestError("encrypted")
        names = _names(package, items.values())
        found = [block for item in chapters for block in _chapter(package, item, names.get(item.part, ""))]
        if not any(block.kind != "heading" for block in found):
            raise IngestError("no_text")
        title = next((" ".join((entry.text or "").split()) for entry in under(book, "title")), "")
        text, blocks = assembled(found)
        return Extraction(text, title, MIME, None, None, None, blocks)


def _item(folder: str, item: Element) -> _Item:
    properties = frozenset(attribute(item, "properties").split())
    return _Item(resolved(folder, attribute(item, "href")), attribute(item, "media-type"), properties)


def _locked(package: Package) -> set[str]:
    """Parts that are encrypted. Fonts often are, and harm nobody."""
    if _ENCRYPTION not in package.names:
        return set()
    return {resolved("", attribute(found, "URI")) for found in under(package.tree(_ENCRYPTION), "CipherReference")}


def _chapter(package: Package, item: _Item, name: str) -> Iterator[Found]:
    data = package.data(item.part)
    markup, _ = decode(data, declared_encoding(data))
    tree, found = content_of(markup)
    if "nav" in item.properties or _is_beside(tree) or not found:
        return
    if name and not any(block.kind == "heading" for block in found):
        yield heading(1, name)
    yield from found


def _is_beside(tree: LexborHTMLParser) -> bool:
    """Whether a page is a cover or a list of contents, by what it or the one thing on it says it is."""
    if tree.body is None:
        return False
    marked = [tree.body, *tree.body.css("body > nav, body > section, body > div")[:1]]
    return any(_BESIDE & set((node.attributes.get("epub:type") or "").split()) for node in marked)


def _names(package: Package, items: Iterable[_Item]) -> dict[str, str]:
    """Chapters' names in the book's contents, by part: the first that leads to it."""
    names: dict[str, str] = {}
    for item in items:
        if item.part not in package.names:
            continue
        folder = posixpath.dirname(item.part)
        if "nav" in item.properties:
            for link in content_of(decode(package.data(item.part))[0])[0].css("nav a[href]"):
                part = resolved(folder, link.attributes.get("href") or "")
                names.setdefault(part, " ".join(link.text().split()))
        elif item.mime == "application/x-dtbncx+xml":
            for point in under(package.tree(item.part), "navPoint"):
                label, target = child(point, "navLabel", "text"), child(point, "content")
                if label is not None and target is not None:
                    part = resolved(folder, attribute(target, "src"))
                    names.setdefault(part, " ".join((label.text or "").split()))
    return names
