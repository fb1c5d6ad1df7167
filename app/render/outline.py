"""Canonical text as blocks of spans: headings, paragraphs, list items, code, tables. Pure.

Works on lines and keeps offsets; serves Markdown, reStructuredText and plain text alike. Called by
`app.render.highlight`; finding passages is `app.ingest.chunking`'s business, not this module's.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

Span = tuple[int, int]
Kind = Literal["heading", "paragraph", "item", "code", "table"]

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+")
_UNDERLINE = re.compile(r"\s*([=\-~^\"'*+#`_.:])\1{2,}\s*$")
_LEVELS = {"=": 1, "#": 1, "*": 1, "-": 2, "~": 3, "^": 3}
_ITEM = re.compile(r"\s*(?P<mark>[-*+•–]|\(?\d{1,4}[.)]|#\.)\s+(?=\S)")
_TABLE = re.compile(r"\s*(?:\||\+[-=+]{2,})")
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_LITERAL = re.compile(r"(?:::\s*$|\s*\.\.\s+(?:code|code-block|sourcecode|parsed-literal|prompt)::)")
_ADMONITION = re.compile(r"\s*(?:!!!|\?\?\?\+?|===|:::)\s*\S")
"""The line over an aside or a tab of Markdown for manuals; what belongs to it is indented."""
_TAIL = re.compile(r"[ \t]+#+[ \t]*$|\s*\{#[\w-]+\}\s*$")


@dataclass(slots=True)
class Block:
    """One block; `spans` are its lines without indentation and marks. `level`: of a heading from 1, of an item its
    depth from 0; `label`: an item's mark."""

    kind: Kind
    start: int
    end: int
    spans: list[Span] = field(default_factory=list[Span])
    level: int = 0
    label: str = ""


def read_blocks(text: str, cuts: Sequence[int], *, prose: bool, rst: bool = False) -> list[Block]:
    """The blocks of `text` in order; no block crosses one of `cuts` (ascending offsets). `rst`: unlike Markdown's,
    its prose is set in as often as its code, each line of which begins with a tab, and it has no fences."""
    reader = _Reader(text, prose, rst)
    for start, end, fresh in _lines(text, cuts):
        if fresh:
            reader.close()
        reader.line(start, end)
    reader.close()
    return reader.blocks


def _lines(text: str, cuts: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """`(start, end, after a cut)` of every line, without its line end; a cut inside a line makes two."""
    at = 0
    while at <= len(text):
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        edges = [at, *(cut for cut in cuts if at < cut < end), end]
        for left, right in pairwise(edges):
            yield left, right, _is_cut(cuts, left)
        at = end + 1


def _is_cut(cuts: Sequence[int], at: int) -> bool:
    index = bisect_right(cuts, at) - 1
    return index >= 0 and cuts[index] == at


class _Reader:
    """Takes lines one by one; holds at most one open block."""

    def __init__(self, text: str, prose: bool, rst: bool) -> None:
        self.blocks: list[Block] = []
        self._text = text
        self._prose = prose
        self._rst = rst
        self._open: Block | None = None
        self._fence = ""
        self._literal = False
        self._in_list = False

    def line(self, start: int, end: int) -> None:
        """Takes the line `text[start:end]`."""
        line = self._text[start:end]
        if not self._prose:
            self._add("code", start, end, (start, end))
        elif self._fence:
            self._fenced(line, start, end)
        elif not self._rst and (fence := _FENCE.match(line)):
            self.close()
            self._fence = fence.group(1)
        elif not line.strip():
            self._blank(start)
        elif not (self._code(line, start, end) or self._marked(line, start, end)):
            self._words(line, start, end)

    def close(self) -> None:
        """Ends the open block."""
        block = self._open
        self._open = None
        if block is None:
            return
        while block.spans and block.kind == "code" and not self._text[slice(*block.spans[-1])].strip():
            block.spans.pop()
        if block.kind == "code" and self._prose:
            self._dedent(block)
        if block.spans:
            self.blocks.append(block)

    def _dedent(self, block: Block) -> None:
        """Drops the indentation that all lines share."""
        lines = [self._text[start:end] for start, end in block.spans]
        shared = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        block.spans = [(min(start + shared, end), end) for start, end in block.spans]

    def _fenced(self, line: str, start: int, end: int) -> None:
        stripped = line.strip(" \t>")
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            self.close()
        else:
            self._add("code", start, end, (start, end))

    def _blank(self, start: int) -> None:
        if self._open is not None and self._open.kind == "code":
            self._open.spans.append((start, start))
        else:
            self.close()

    def _code(self, line: str, start: int, end: int) -> bool:
        """Indented code: four blanks outside of lists, any indentation after `::`."""
        if self._rst and self._is_marked_code(start):
            self._add("code", start, end, (start, end))
            return True
        indent = len(line) - len(line.lstrip())
        running = self._open is not None and self._open.kind == "code"
        if running and (indent == 0 or (self._rst and self._is_marked_code(self._open_start()))):
            self.close()
            self._literal = running = False
        if indent == 0:
            self._in_list = self._in_list and bool(_ITEM.match(line))
            return False
        if running or (self._open is None and (self._literal or self._is_indented(indent))):
            self._add("code", start, end, (start, end))
            return True
        return False

    def _is_indented(self, indent: int) -> bool:
        return indent >= 4 and not self._in_list and not self._rst

    def _is_marked_code(self, at: int) -> bool:
        """Whether the line of which `at` is a place begins with a tab."""
        return self._text.startswith("\t", self._text.rfind("\n", 0, at) + 1)

    def _open_start(self) -> int:
        return self._open.start if self._open is not None else 0

    def _marked(self, line: str, start: int, end: int) -> bool:
        """A line whose beginning says what it is."""
        if heading := _ATX.match(line):
            self._heading(start + heading.end(), end, len(heading.group(1)))
        elif underline := _UNDERLINE.match(line):
            self._underline(underline.group(1))
        elif _TABLE.match(line):
            self._add("table", start, end, (start, end))
        elif item := _ITEM.match(line):
            self.close()
            self._in_list = True
            depth = (len(line) - len(line.lstrip())) // 2
            label = item.group("mark") if item.group("mark")[-1] in ".)" else "–"
            self._open = Block("item", start, end, [(start + item.end(), end)], depth, label)
        else:
            return False
        return True

    def _heading(self, start: int, end: int, level: int) -> None:
        self.close()
        tail = _TAIL.search(self._text, start, end)
        self.blocks.append(Block("heading", start, end, [(start, tail.start() if tail else end)], level))

    def _underline(self, character: str) -> None:
        """Turns the one line above into a heading; elsewhere it is a rule and shows nothing."""
        block = self._open
        if block is not None and block.kind == "paragraph" and len(block.spans) == 1:
            block.kind, block.level = "heading", _LEVELS.get(character, 3)
        self.close()

    def _words(self, line: str, start: int, end: int) -> None:
        quote = _QUOTE.match(line)
        left = start + (quote.end() if quote else len(line) - len(line.lstrip()))
        self._literal = bool(_LITERAL.search(line))
        self._in_list = self._in_list or bool(_ADMONITION.match(line))
        if self._open is not None and self._open.kind in ("code", "table"):
            self.close()
        kind: Kind = self._open.kind if self._open is not None else "paragraph"
        self._add(kind, start, end, (left, end))

    def _add(self, kind: Kind, start: int, end: int, span: Span) -> None:
        if self._open is None or self._open.kind != kind:
            self.close()
            self._open = Block(kind, start, end)
        self._open.spans.append(span)
        self._open.end = end
