"""Markdown, reStructuredText and plain text as blocks: paragraphs, headings, table rows and code, by offset. Pure.

It reads just enough markup to keep the four apart; it is no Markdown parser and renders nothing. Used by
`app.render.sentences`, which cuts paragraphs into sentences.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "heading", "row", "code"]


@dataclass(slots=True)
class Block:
    """`text[start:end]`, line ends included where it has more than one line."""

    start: int
    end: int
    kind: Kind
    lines: int = 1
    indented: bool = False
    """Code by its indentation alone: nothing says so."""


def read_blocks(text: str) -> list[Block]:
    """The blocks of `text`, in order, never overlapping. List marks, heading marks and rules lie outside of every
    block, and so do directives that show nothing to a reader."""
    return _Blocks(text).read()


def inline_code(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Code spans of the paragraph `text[start:end]`, delimiters included: pairs of equally long runs of backticks,
    leftmost first; a run without a partner is text."""
    runs = [(run.start(), run.end()) for run in re.finditer(r"`+", text[start:end])]
    later: dict[int, list[int]] = {}
    for at in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[at][1] - runs[at][0], []).append(at)
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(runs):
        same = later[runs[at][1] - runs[at][0]]
        while same and same[-1] <= at:
            same.pop()
        if same:
            partner = same[-1]
            spans.append((start + runs[at][0], start + runs[partner][1]))
            at = partner
        at += 1
    return spans


_FENCE = re.compile(r"\s*(?:>\s?)*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(`{3,}|~{3,})([^`\n]*)$")
_RULE = re.compile(r"([=\-~^\"'*+#`_.:])\1{2,}|[=\-+|: ]{3,}")
_ATX = re.compile(r"\s{0,3}#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-*+•–:]|\(?\d{1,3}[.)]|#\.)\s+(?:\[[ xX]\]\s+)?")
_OPTION = re.compile(r"\s*(?=--?[A-Za-z])")
_CELLS = re.compile(r"\s*(?=[^\s|](?:[^\n|]{0,38}[^\s.!?,;:|])?[ ]{2,}\S)")
"""A row of a table set with blanks: a short first cell, then at least two of them."""
_SPAN_CHARS = 1_000
"""How far a code span may reach to either side of the start of a line."""
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w-]+)::\s*")
_ADMONITION = re.compile(r"\s*(?:!!!|\?\?\?\+?|===)\s+")
_CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math", "raw"})
_MUTE_DIRECTIVES = frozenset({"image", "figure", "include", "toctree", "highlight", "contents", "index", "only"})


class _Blocks:
    """Reads lines into blocks. Holds at most one open paragraph or one open block of code."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done: list[Block] = []
        self._open: Block | None = None
        self._fence = ""
        self._literal: int | None = None
        """The indentation that a literal block has to exceed, once `::` or a code directive announced one."""
        self._nested = False
        """Inside a list or directive: indentation means "belongs to it", not code."""
        self._after_blank = True

    def read(self) -> list[Block]:
        start = 0
        for line in self._text.splitlines(keepends=True):
            self._line(start, line)
            start += len(line)
        self._close()
        return self._done

    def _line(self, start: int, line: str) -> None:
        stripped = line.strip()
        if self._fence:
            self._fenced(start, line, stripped)
        elif not stripped:
            self._blank()
        elif not self._indented_code(start, line):
            self._markup(start, line, stripped)
            self._after_blank = False

    def _fenced(self, start: int, line: str, stripped: str) -> None:
        assert self._open is not None
        self._open.end = start + len(line)
        closing = stripped.lstrip("> ")
        if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
            self._fence = ""
            self._close()

    def _blank(self) -> None:
        if self._open is None or self._open.kind != "code":
            self._close()
        self._after_blank = True

    def _indented_code(self, start: int, line: str) -> bool:
        """Takes `line` when it belongs to a block of code that is marked by indentation alone."""
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if self._literal is not None and indent <= self._literal:
            self._literal = None
            self._close()
        elif self._literal is None and self._open and self._open.kind == "code" and indent < 4:
            self._close()
        if self._literal is None and (self._nested or indent < 4 or not (self._after_blank or self._in_code())):
            return False
        if self._open and self._open.kind == "code":
            self._open.end = start + len(line)
        else:
            self._close()
            self._open = Block(start, start + len(line), "code", indented=self._literal is None)
        return True

    def _in_code(self) -> bool:
        return self._open is not None and self._open.kind == "code"

    def _markup(self, start: int, line: str, stripped: str) -> None:
        if self._after_blank and line[0] not in " \t":
            self._nested = False
        end = start + len(line)
        if (fence := _FENCE.match(line)) and not self._underlines(stripped):
            self._close()
            self._fence = fence.group(1)
            self._open = Block(start + fence.start(1), end, "code")
        elif _RULE.fullmatch(stripped):
            self._rule()
        elif atx := _ATX.match(line):
            self._single(start + atx.end(), end, "heading")
        elif stripped.startswith("|"):
            self._single(start, end, "row")
        elif stripped.startswith(".. ") or stripped == "..":
            self._directive(start, line, end)
        elif label := _ADMONITION.match(line):
            self._single(start + label.end(), end, "heading")
            self._nested = True
        elif opener := _ITEM.match(line) or self._entry(start, line):
            self._close()
            self._nested = True
            self._text_line(start + opener.end(), end, line)
        else:
            quote = _QUOTE.match(line)
            begins = start + quote.end() if quote and not self._open else start
            self._text_line(begins, end, line)

    def _entry(self, start: int, line: str) -> re.Match[str] | None:
        """The start of an option or of a row of cells."""
        found = _OPTION.match(line) or _CELLS.match(line)
        return None if found is None or self._splits_code(start) else found

    def _splits_code(self, start: int) -> bool:
        """Whether a code span of the paragraph goes on over `start`: what looks like an option there is code."""
        if self._open is None or self._open.kind != "prose":
            return False
        begin = max(self._open.start, start - _SPAN_CHARS)
        if "`" not in self._text[begin:start]:
            return False
        stop = self._text.find("\n\n", start, start + _SPAN_CHARS)
        spans = inline_code(self._text, begin, stop if stop > 0 else min(len(self._text), start + _SPAN_CHARS))
        return any(first < start < last for first, last in spans)

    def _underlines(self, stripped: str) -> bool:
        """Whether a row of tildes or backticks underlines the line above: it is as long as that, a fence is short."""
        one_line = self._open is not None and self._open.kind == "prose" and self._open.lines == 1
        return (
            one_line
            and not self._after_blank
            and _RULE.fullmatch(stripped) is not None
            and self._open is not None
            and len(stripped) >= len(self._text[self._open.start : self._open.end].strip())
        )

    def _rule(self) -> None:
        """A rule under a single line of text makes that line a heading; any other rule only parts."""
        if self._open and self._open.kind == "prose" and self._open.lines == 1 and not self._after_blank:
            self._open.kind = "heading"
        self._close()

    def _directive(self, start: int, line: str, end: int) -> None:
        self._close()
        directive = _DIRECTIVE.match(line)
        if directive is None:
            return
        self._nested = True
        name = directive.group(1).lower()
        if name in _CODE_DIRECTIVES:
            self._literal = len(line) - len(line.lstrip())
        elif name not in _MUTE_DIRECTIVES:
            self._text_line(start + directive.end(), end, line)

    def _text_line(self, start: int, end: int, line: str) -> None:
        if self._open is None:
            self._open = Block(start, end, "prose")
        else:
            self._open.end = end
            self._open.lines += 1
        if line.rstrip().endswith("::"):
            self._literal = len(line) - len(line.lstrip())

    def _single(self, start: int, end: int, kind: Kind) -> None:
        self._close()
        self._done.append(Block(start, end, kind))

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None
