"""A document's canonical text as readable HTML, with a passage set off and its supporting words marked.

Every character that is shown comes from its own offset of the canonical text, so a citation is marked exactly whatever
the format was. Reads just enough markup (headings, lists, code, tables, inline code, emphasis) to set a page; it is no
Markdown renderer, shows no image and makes no link. Called by the reader page, and
for the quotes of notes.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate, pairwise

from markupsafe import Markup

from app.render.outline import Block, Span, read_blocks
from app.render.tokens import code_words

_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`{1,3})(?!`)(?P<code_text>.+?)(?<!`)(?P=ticks)(?!`))"
    r"|(?P<strong>\*\*(?=\S)(?P<strong_text>.+?)(?<=\S)\*\*)"
    r"|(?P<link>!?\[(?P<link_text>[^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\))?[^()\n]{0,200}\))"
)
_DELIMITER_ROW = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?\s*")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_PROSE = frozenset({"", ".md", ".markdown", ".rst", ".txt", ".text", ".html", ".htm", ".pdf", ".docx", ".log", ".org"})
_TEXT_MIMES = ("text/markdown", "text/x-rst", "text/html", "application/pdf", "application/xhtml+xml")
_LINED = frozenset({"text/plain", "message/rfc822"})
"""Types whose writers end their lines themselves."""
_NEW_TEXT = frozenset({"text/csv", "text/tab-separated-values", "application/epub+zip", "message/rfc822"})
"""Types whose canonical text is written by Docent, with Markdown's shapes."""


def reader_html(
    text: str,
    mime: str,
    *,
    path: str = "",
    passage: Span | None = None,
    support: Sequence[Span] = (),
    numeral: int | None = None,
) -> Markup:
    """The document's HTML.

    Args:
        text: The canonical text.
        mime: Decides, with the suffix of `path`, whether it is prose or shown as it stands.
        passage: `(start, end)` in `text`: wrapped in `<section class="passage" id="passage">`.
        support: Spans in `text` that get `<mark>`.
        numeral: The citation's number, set in the margin of the passage.
    """
    cuts = sorted(at for at in (passage or ()) if 0 < at < len(text))
    blocks = read_blocks(text, cuts, prose=_is_prose(mime, path), rst=mime == "text/x-rst")
    page = _Page(text, sorted(support), keep_lines=mime in _LINED)
    return Markup("".join(_sections(page, blocks, passage, numeral)))  # noqa: S704 - every text is escaped by _Page


def quote_html(text: str, marks: Sequence[Span] = ()) -> Markup:
    """A cut of a document on one line, for a note: inline code and emphasis set, `marks` in `<mark>`."""
    valid = [(start, end) for start, end in sorted(marks) if 0 <= start < end <= len(text)]
    return Markup(_Page(text, valid, keep_lines=False).words([(0, len(text))]))  # noqa: S704 - escaped by _Page


def _is_prose(mime: str, path: str) -> bool:
    if mime in _TEXT_MIMES or mime in _NEW_TEXT or mime.startswith("application/vnd.openxmlformats"):
        return True
    name = path.rpartition("/")[2].lower()
    suffix = "." + name.rpartition(".")[2] if "." in name else ""
    return mime == "text/plain" and suffix in _PROSE


def _sections(page: "_Page", blocks: Sequence[Block], passage: Span | None, numeral: int | None) -> Iterator[str]:
    """Wraps the blocks of the passage; an empty passage (text changed since) wraps none."""
    inside = False
    for block in blocks:
        now = passage is not None and block.start < passage[1] and block.end > passage[0]
        if now and not inside:
            yield '<section class="passage" id="passage" tabindex="-1">'
            yield "" if numeral is None else f'<span class="passage-n" aria-hidden="true">{numeral}</span>'
            numeral = None
        if inside and not now:
            yield "</section>"
        inside = now
        yield page.block(block)
    if inside:
        yield "</section>"


class _Page:
    """Writes blocks; knows which spans are marked."""

    def __init__(self, text: str, marks: Sequence[Span], *, keep_lines: bool) -> None:
        self._text = text
        self._marks = marks
        self._joint, self._flow = ("\n", "lines") if keep_lines else (" ", "flow")

    def block(self, block: Block) -> str:
        """One block's HTML."""
        if block.kind == "table" and self._is_markdown_table(block.spans):
            return self._table(block.spans)
        if block.kind in ("code", "table"):
            body = "\n".join(self._marked(start, end) for start, end in block.spans)
            return f'<div class="code"><pre tabindex="0"><code>{body}</code></pre></div>'
        body = self.words(block.spans)
        if block.kind == "heading":
            level = min(6, 1 + block.level)
            return f"<h{level}>{body}</h{level}>"
        if block.kind == "item":
            mark = f'<span class="item-mark">{escape(block.label)}</span>'
            return f'<p class="item depth-{min(block.level, 4)}">{mark}<span>{body}</span></p>'
        return f'<p class="{self._flow}">{body}</p>'

    def words(self, spans: Sequence[Span]) -> str:
        """Lines as running text; inline code and emphasis may go from one line into the next."""
        joined = self._joint.join(self._text[start:end] for start, end in spans)
        begins = list(accumulate((end - start + 1 for start, end in spans[:-1]), initial=0))

        def stretch(left: int, right: int) -> str:
            """`joined[left:right]`, each character from its own offset of the text."""
            parts: list[str] = []
            for at in range(bisect_right(begins, left) - 1, len(begins)):
                begin, (start, end) = begins[at], spans[at]
                if begin > right:
                    break
                if left < begin:
                    parts.append(self._joint)
                low, high = max(left, begin), min(right, begin + end - start)
                parts.append(self._marked(start + low - begin, start + high - begin) if low < high else "")
            return "".join(parts)

        def inline(left: int, right: int) -> str:
            """`joined[left:right]` with its markup; a link's words may hold more of it."""
            parts: list[str] = []
            at = left
            for found in _INLINE.finditer(joined, left, right):
                parts.append(stretch(at, found.start()))
                name = next(name for name in ("code", "strong", "link") if found.group(name) is not None)
                inside = found.span(f"{name}_text")
                parts.append(_styled(name, stretch(*inside) if name == "code" else inline(*inside)))
                at = found.end()
            return "".join([*parts, stretch(at, right)])

        return inline(0, len(joined))

    def _table(self, rows: Sequence[Span]) -> str:
        """A Markdown table as one, its first row as heads; cells keep their offsets. A bar that is none of the table's
        has a stroke before it, which is nothing to read."""
        lines: list[str] = []
        for number, row in enumerate(rows):
            if number == 1:
                continue
            name = "td" if number else "th"
            shown = (self.words([cell]).replace("\\|", "|") for cell in self._cells(*row))
            cells = "".join(f"<{name}>{words}</{name}>" for words in shown)
            lines.append(f"<tr>{cells}</tr>")
        head, body = lines[0], "".join(lines[1:])
        return f'<div class="table-scroll" tabindex="0"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'

    def _is_markdown_table(self, rows: Sequence[Span]) -> bool:
        return len(rows) > 1 and bool(_DELIMITER_ROW.fullmatch(self._text, *rows[1]))

    def _cells(self, start: int, end: int) -> Iterator[Span]:
        edges = [found.start() for found in _CELL_EDGE.finditer(self._text, start, end)]
        inner = edges if self._text[start:end].rstrip().endswith("|") else [*edges, end]
        for left, right in pairwise(inner):
            cell = self._text[left + 1 : right]
            yield left + 1 + len(cell) - len(cell.lstrip()), max(left + 1, right - len(cell) + len(cell.rstrip()))

    def _marked(self, start: int, end: int) -> str:
        """`text[start:end]` escaped, marked spans in `<mark>`."""
        parts: list[str] = []
        at = start
        for mark_start, mark_end in self._marks:
            left, right = max(mark_start, at), min(mark_end, end)
            if left < right:
                parts.append(escape(self._text[at:left], quote=False))
                parts.append(f"<mark>{escape(self._text[left:right], quote=False)}</mark>")
                at = right
        return "".join([*parts, escape(self._text[at:end], quote=False)])


def _styled(name: str, inner: str) -> str:
    if name == "code":
        return f"<code>{code_words(inner)}</code>"
    return f"<strong>{inner}</strong>" if name == "strong" else inner
