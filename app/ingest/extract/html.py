"""HTML to blocks: a page's own text as headings, paragraphs, lists, tables and code, without its furniture.

The canonical text is new (HTML's lines mean nothing): Markdown's shapes for headings, lists, tables and code, no inline
marks. Called by `dispatch`, by `docx` with mammoth's HTML, by `epub` and `eml`. `html_walk` turns the tree into blocks;
this chooses the part of the tree that is content.
"""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.decode import decode, normalise
from app.ingest.extract.found import Found, assembled
from app.ingest.extract.html_walk import walk
from app.ingest.extract.xhtml import as_html, is_xml

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_FURNITURE = re.compile(
    r"(?:^|[-_\s])(?:sidebar|side-bar|navbar|nav|navigation|menu|footer|breadcrumbs?|cookie|cookies|advert|ads|"
    r"pagination|skip-link|toc|social|share)(?:$|[-_\s])",
    re.IGNORECASE,
)
_FURNITURE_TAGS = frozenset({"nav", "footer", "aside"})
_FURNITURE_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search"})
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ENOUGH = 200
"""Characters that `<main>` or the only `<article>` must hold to be taken for the whole content."""

MAX_DEPTH = 2_000
"""Nesting that no page has; a tree deeper than that is made to hurt a parser."""


def extract_html(data: bytes, charset: str | None = None) -> Extraction:
    """Reads an HTML page or fragment. Title: its first level-one heading, else `<title>`.

    `charset` is what the server called it, which counts for more than what the page says of itself (HTML Standard,
    section 13.2.3.2, Determining the character encoding).

    Raises:
        IngestError: no_text, or corrupt for nesting beyond `MAX_DEPTH`.
    """
    text, encoding = decode(data, charset, declared_encoding(data))
    return from_markup(text, "text/html", encoding)


def from_markup(markup: str, mime: str, encoding: str | None) -> Extraction:
    """Reads decoded HTML. Same errors as `extract_html`."""
    tree, found = content_of(markup)
    if not found:
        raise IngestError("no_text")
    page_title = tree.css_first("title")
    canonical, blocks = assembled(found)
    title = next((block.label for block in blocks if block.kind == "heading" and block.level == 1), "")
    if not title and page_title is not None:
        title = " ".join(normalise(page_title.text()).split())
    return Extraction(canonical, title, mime, encoding, None, None, blocks)


def content_of(markup: str) -> tuple[LexborHTMLParser, list[Found]]:
    """The tree of decoded HTML, and the blocks of its content, none where it has no text.

    Raises:
        IngestError: corrupt for nesting beyond `MAX_DEPTH`.
    """
    if is_xml(markup):
        markup = as_html(markup)
    _check_depth(markup)
    tree = LexborHTMLParser(markup)
    body = tree.body or tree.root
    return tree, [] if body is None else _content(body)


def declared_encoding(data: bytes) -> str | None:
    """The character set that an HTML page names in its first bytes."""
    head = data[:4096]
    declared = _CHARSET.search(head) or _XML_ENCODING.search(head)
    return declared[1].decode("ascii") if declared else None


def _check_depth(markup: str) -> None:
    """Refuses absurd nesting before the tree is built: lexbor takes minutes over a million open elements."""
    if markup.count("<") < MAX_DEPTH:
        return
    depth = 0
    for match in re.finditer(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*?(/?)>", markup):
        if match[3] or match[2].lower() in _UNNESTED:
            continue
        depth = max(0, depth - 1) if match[1] else depth + 1
        if depth > MAX_DEPTH:
            raise IngestError("corrupt")


_UNNESTED = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
    | {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup"}
)
"""Elements that hold nothing, or that the next of their kind closes: left open on real pages by the thousand."""


def _content(body: LexborNode) -> list[Found]:
    """The page's own text: its `<main>` or only `<article>`, else the body without furniture, else all of it."""
    for selector in ("main", "[role=main]", "article"):
        candidates = body.css(selector)
        if len(candidates) == 1 and len(candidates[0].text(strip=True)) >= _ENOUGH:
            found = list(walk(candidates[0], _is_hidden))
            if found:
                return found
    found = list(walk(body, _is_furniture))
    return found or list(walk(body, _is_hidden))


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    return bool(style) and _INVISIBLE.search(style) is not None


def _is_furniture(node: LexborNode) -> bool:
    """Navigation, footers, sidebars; a header is furniture unless it holds the page's heading."""
    if node.tag in _FURNITURE_TAGS or _is_hidden(node):
        return True
    if node.tag == "header":
        return node.css_first("h1, h2") is None
    if not node.attributes:
        return False
    attributes = node.attributes
    if attributes.get("role") in _FURNITURE_ROLES:
        return True
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    return node.tag in ("div", "section", "ul") and _FURNITURE.search(names) is not None
