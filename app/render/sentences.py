"""Where sentences begin and end in Markdown, reStructuredText or plain text: offsets, nothing is changed. Pure.

Used by `app.rag.citations` (which sentence a marker backs, which sentence of a passage supports it), by
`app.rag.quoting` (what can be quoted) and by the renderer of answers. It reads just enough markup to keep code, table
rows, list items and headings apart; it is no Markdown parser and renders nothing.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "heading", "row", "code"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text[start:end]` is one unit without white space around it: a sentence, a heading's words, a table row, or a
    whole block of code (fences included)."""

    start: int
    end: int
    kind: Kind


def sentences(text: str) -> list[Sentence]:
    """All units of `text`, in order, never overlapping.

    List marks, heading marks and rules lie outside of every unit. A citation marker that follows the full stop
    (`… done. [1]`) belongs to the sentence it follows. Linear in the length of `text`.
    """
    units: list[Sentence] = []
    for block in _Blocks(text).read():
        if block.kind == "prose" or (block.indented and _reads_as_prose(text[block.start : block.end])):
            units.extend(_split(text, block.start, block.end))
        elif trimmed := _trim(text, block.start, block.end):
            units.append(Sentence(*trimmed, block.kind))
    return units


def code_spans(text: str) -> list[tuple[int, int]]:
    """`(start, end)` of every block of code and every inline code span, delimiters included, in order."""
    spans: list[tuple[int, int]] = []
    for block in _Blocks(text).read():
        if block.kind == "code":
            spans.append((block.start, block.end))
        else:
            spans.extend(_inline_code(text, block.start, block.end))
    return spans


def inside(spans: list[tuple[int, int]], offset: int) -> bool:
    """Whether `offset` lies in one of `spans`, which are in order and don't overlap."""
    at = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    return at >= 0 and offset < spans[at][1]


_FENCE = re.compile(r"\s*(?:>\s?)*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(`{3,}|~{3,})([^`\n]*)$")
_RULE = re.compile(r"([=\-~^\"'*+#`_.:])\1{2,}|[=\-+|: ]{3,}")
_ATX = re.compile(r"\s{0,3}#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-*+•–:]|\(?\d{1,3}[.)]|#\.)\s+(?:\[[ xX]\]\s+)?")
_OPTION = re.compile(r"\s*(?=--?[A-Za-z])")
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w-]+)::\s*")
_ADMONITION = re.compile(r"\s*(?:!!!|\?\?\?\+?|===)\s+")
_CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math", "raw"})
_MUTE_DIRECTIVES = frozenset({"image", "figure", "include", "toctree", "highlight", "contents", "index", "only"})


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    kind: Kind
    lines: int = 1
    indented: bool = False
    """Code by its indentation alone: nothing says so."""


class _Blocks:
    """Reads lines into blocks. Holds at most one open paragraph or one open block of code."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done: list[_Block] = []
        self._open: _Block | None = None
        self._fence = ""
        self._literal: int | None = None
        """The indentation that a literal block has to exceed, once `::` or a code directive announced one."""
        self._nested = False
        """Inside a list or directive: indentation means "belongs to it", not code."""
        self._after_blank = True

    def read(self) -> list[_Block]:
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
            self._open = _Block(start, start + len(line), "code", indented=self._literal is None)
        return True

    def _in_code(self) -> bool:
        return self._open is not None and self._open.kind == "code"

    def _markup(self, start: int, line: str, stripped: str) -> None:
        if self._after_blank and line[0] not in " \t":
            self._nested = False
        end = start + len(line)
        if fence := _FENCE.match(line):
            self._close()
            self._fence = fence.group(1)
            self._open = _Block(start + fence.start(1), end, "code")
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
        elif opener := _ITEM.match(line) or _OPTION.match(line):
            self._close()
            self._nested = True
            self._text_line(start + opener.end(), end, line)
        else:
            quote = _QUOTE.match(line)
            begins = start + quote.end() if quote and not self._open else start
            self._text_line(begins, end, line)

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
            self._open = _Block(start, end, "prose")
        else:
            self._open.end = end
            self._open.lines += 1
        if line.rstrip().endswith("::"):
            self._literal = len(line) - len(line.lstrip())

    def _single(self, start: int, end: int, kind: Kind) -> None:
        self._close()
        self._done.append(_Block(start, end, kind))

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None


_END = re.compile(
    r"(?:(?P<cjk>[。！？]+)|[.!?…]+)"
    r"(?P<closers>[\"'”’»)\]*_`」』）]*)"
    r"(?:[ \t]?\[\d[\d,; \t–-]*\](?!\())*"
)
_WORD = re.compile(r"[^\W_](?:[\w.]*\w)?$")
_ABBREVIATIONS = re.compile(
    r"e\.g|i\.e|eg|ie|vs|cf|etc|al|approx|incl|excl|ca|mrs?|ms|dr|prof|st|jr|sr|inc|ltd|esp|resp|viz|dept|est|"
    r"z\.b|d\.h|u\.a|bzw|usw|evtl|ggf|sog|inkl|exkl|bspw|vgl|p\.ej|ej|sra"
)
_BEFORE_NUMBER = re.compile(r"no|nr|fig|pp?|vol|sec|ch|art|abb|eq|ver|v")


def _reads_as_prose(block: str) -> bool:
    """Whether an indented block is a description rather than code: at least eight words, nearly all of letters."""
    words = block.split()
    plain = sum(word.strip("\"'`*_().,;:!?").replace("-", "").replace("'", "").isalpha() for word in words)
    return len(words) >= 8 and plain >= 0.8 * len(words)


def _split(text: str, start: int, end: int) -> Iterator[Sentence]:
    code = _inline_code(text, start, end)
    begins = start
    for stop in _END.finditer(text, start, end):
        if not inside(code, stop.start()) and _ends(text, stop, start, end):
            if trimmed := _trim(text, begins, stop.end()):
                yield Sentence(*trimmed, "prose")
            begins = stop.end()
    if trimmed := _trim(text, begins, end):
        yield Sentence(*trimmed, "prose")


def _ends(text: str, stop: re.Match[str], start: int, end: int) -> bool:
    """Whether this full stop ends a sentence, and is no decimal point, abbreviation or part of a name."""
    if stop.group("cjk") or stop.end() >= end:
        return True
    if not text[stop.end()].isspace():
        return False
    rest = text[stop.end() : min(end, stop.end() + 40)].lstrip()
    if not rest:
        return True
    follows = rest[0]
    mark = stop.group().rstrip("0123456789[],;– \t")
    if not mark.startswith(".") or mark.startswith(".."):
        return not (follows.islower() and (stop.group("closers") or mark[0] in ".…"))
    found = _WORD.search(text, max(start, stop.start() - 24), stop.start())
    word = found.group().lower() if found else ""
    if _ABBREVIATIONS.fullmatch(word) or (len(word) == 1 and word.isalpha()):
        return False
    if _BEFORE_NUMBER.fullmatch(word) and follows.isdigit():
        return False
    return not (follows.islower() and 0 < len(word) < 4 and word.isalpha())


def _inline_code(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Pairs of equally long runs of backticks, leftmost first; a run without a partner is text."""
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


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at its ends; None when no letter or digit is in it."""
    piece = text[start:end]
    if not any(character.isalnum() for character in piece):
        return None
    begins = start + len(piece) - len(piece.lstrip())
    return begins, start + len(piece.rstrip())
