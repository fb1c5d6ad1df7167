"""One pass over an HTML tree: elements become blocks. No recursion, so depth costs memory and not the stack.

Called by `html`. Owns what each element means, but for tables (`html_table`'s); what is left out is the caller's
`skip`.
"""

from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

from app.ingest.blocks import BlockKind
from app.ingest.extract.found import Found
from app.ingest.extract.html_table import is_layout, table_of

_NO_TEXT = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head", "title", "button"}
    | {"select", "textarea", "input", "audio", "video", "-comment", "-doctype"}
)
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"}
    | {"label", "mark", "q", "ruby", "rb", "rp", "rt", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
    | {"time", "tt", "u", "var", "wbr", "img", "nobr", "acronym"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_MAX_INDENT = 6


class _Walker:
    """The block being gathered, and the lists it stands in."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self._words: list[str] = []
        self._lists: list[int | None] = []
        """Open lists, innermost last: the next number of an ordered one, None for a bulleted one."""
        self._items: list[str] = []
        self._prefix = ""

    def text(self, text: str) -> None:
        """Takes running text."""
        self._words.append(text)

    def open(self, tag: str) -> None:
        """An element begins that is not inline."""
        self.flush()
        if tag in ("ul", "ol", "dl"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag in ("li", "dt", "dd") and self._lists:
            self._prefix = self._marker(tag)

    def close(self, tag: str) -> None:
        """The same element ends."""
        if tag in _HEADINGS:
            label = self._take_words()
            if label:
                self._end_list()
                self.found.append(Found("heading", _HEADINGS[tag], label, label))
            return
        self.flush()
        if tag in ("ul", "ol", "dl") and self._lists:
            self._lists.pop()
            if not self._lists:
                self._end_list()

    def flush(self) -> None:
        """Ends the paragraph or list item being gathered."""
        words = self._take_words()
        if not words:
            return
        if self._lists:
            self._items.append(self._prefix + words)
            self._prefix = " " * len(self._prefix)
        else:
            self.found.append(Found("paragraph", 0, words, ""))

    def block(self, kind: BlockKind, text: str) -> None:
        """Takes a finished block (a table, code)."""
        self.flush()
        if text.strip():
            self._end_list()
            self.found.append(Found(kind, 0, text, ""))

    def _marker(self, tag: str) -> str:
        indent = "  " * min(len(self._lists) - 1, _MAX_INDENT)
        number = self._lists[-1]
        if tag == "dt":
            return indent
        if tag == "dd":
            return indent + "  "
        if number is None:
            return indent + "- "
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _end_list(self) -> None:
        if self._items:
            self.found.append(Found("list", 0, "\n".join(self._items), ""))
            self._items = []

    def _take_words(self) -> str:
        lines = "".join(self._words).split("\v")
        self._words = []
        return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


def walk(root: LexborNode, skip: Callable[[LexborNode], bool]) -> Iterator[Found]:
    """The blocks below `root` in document order, without what `skip` says yes to."""
    walker = _Walker()
    stack: list[tuple[LexborNode, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        tag = node.tag or ""
        if leaving:
            walker.close(tag)
        elif tag == "-text":
            walker.text(_text_of(node))
        elif tag == "br":
            walker.text("\v")
        elif tag not in _NO_TEXT and not (node is not root and skip(node)):
            _enter(walker, node, tag, stack)
    walker.flush()
    walker.close("ul")
    yield from walker.found


def _enter(walker: _Walker, node: LexborNode, tag: str, stack: list[tuple[LexborNode, bool]]) -> None:
    if tag == "pre":
        walker.block("code", _raw_text(node))
        return
    if tag == "table" and not is_layout(node):
        for kind, text in table_of(node, _line_of):
            walker.block(kind, text)
        return
    if tag not in _INLINE:
        walker.open(tag)
        stack.append((node, True))
        if tag in ("td", "th"):
            walker.text(" ")
    child = node.last_child
    while child is not None:
        stack.append((child, False))
        child = child.prev


def _text_of(node: LexborNode) -> str:
    return (node.text_content or "").replace("\v", " ")


def _raw_text(node: LexborNode) -> str:
    """Text as it stands, line breaks included, `<br>` as one."""
    parts: list[str] = []
    for child in node.traverse(include_text=True):
        if child.tag == "-text":
            parts.append(child.text_content or "")
        elif child.tag == "br":
            parts.append("\n")
    return "".join(parts)


def _line_of(node: LexborNode) -> str:
    """What an element holds, on one line; paragraphs and lists in it are run together."""
    parts: list[str] = []
    for child in node.traverse(include_text=True):
        if child.tag == "-text" and (child.parent is None or child.parent.tag not in _NO_TEXT):
            parts.append(_text_of(child))
        elif child.tag not in _INLINE:
            parts.append(" ")
    return " ".join("".join(parts).split())
