"""Where sentences begin and end in Markdown, reStructuredText or plain text: offsets, nothing is changed. Pure.

Used by `app.rag.citations` (which sentence a marker backs, which sentence of a passage supports it), by
`app.rag.quoting` (what can be quoted) and by the renderer of answers. What is a paragraph and what is code is for
`app.render.text_blocks` to say.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from app.render.text_blocks import Kind, inline_code, read_blocks


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
    for block in read_blocks(text):
        if block.kind == "prose" or (block.indented and _reads_as_prose(text[block.start : block.end])):
            units.extend(_split(text, block.start, block.end))
        elif trimmed := _trim(text, block.start, block.end):
            units.append(Sentence(*trimmed, block.kind))
    return units


def code_spans(text: str) -> list[tuple[int, int]]:
    """`(start, end)` of every block of code and every inline code span, delimiters included, in order."""
    spans: list[tuple[int, int]] = []
    for block in read_blocks(text):
        if block.kind == "code":
            spans.append((block.start, block.end))
        else:
            spans.extend(inline_code(text, block.start, block.end))
    return spans


def inside(spans: list[tuple[int, int]], offset: int) -> bool:
    """Whether `offset` lies in one of `spans`, which are in order and don't overlap."""
    at = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    return at >= 0 and offset < spans[at][1]


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
    code = inline_code(text, start, end)
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


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at its ends; None when no letter or digit is in it."""
    piece = text[start:end]
    if not any(character.isalnum() for character in piece):
        return None
    begins = start + len(piece) - len(piece.lstrip())
    return begins, start + len(piece.rstrip())
