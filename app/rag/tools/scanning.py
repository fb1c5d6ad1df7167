"""Which lines of a text fit a pattern, and the stretches around them that are worth showing. Pure but for the clock.

Owns the walk through a text with its time limit, and how matching lines become stretches: with their neighbours where
those are short, a long line cut around what fits. Which texts are walked, and what is said of them, is `grep`'s.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.rag.tools.patterns import LinePattern

BLOCK = 256 << 10
"""Bytes between two looks at the time."""
COUNTED = 10_000
"""Matching lines that are counted; more are too many anyway."""
KEPT = 40
"""Matching lines of one text that can be shown."""
STRETCH_CHARS = 1200
_AROUND = 300


@dataclass(frozen=True, slots=True)
class Line:
    """A matching line of a text: its number, its span, and the span of what fits, in characters."""

    number: int
    start: int
    end: int
    match_start: int
    match_end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """`lines` are the first that fit, `count` how many do; not `finished` when the walk was cut short."""

    lines: tuple[Line, ...]
    count: int
    finished: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole lines, or a part of one, with at least one match: `text[start:end]`, beginning in line `line`."""

    start: int
    end: int
    line: int
    matches: tuple[int, ...]
    """The numbers of the matching lines."""


def scan(text: str, pattern: LinePattern, *, is_late: Callable[[], bool], most: int = COUNTED) -> Scan:
    """Walks through `text` until its end, `most` matching lines, or until it is late."""
    data = text.encode("utf-8")
    place = _Place(data, is_ascii=len(data) == len(text))
    lines: list[Line] = []
    count = at = 0
    while at < len(data):
        if is_late():
            return Scan(tuple(lines), count, finished=False)
        block_end = data.find(b"\n", min(at + BLOCK, len(data) - 1))
        block_end = len(data) if block_end < 0 else block_end
        while at < block_end or (at == block_end and at < len(data)):
            if count % 256 == 255 and is_late():
                return Scan(tuple(lines), count, finished=False)
            found = pattern.find(data, at, block_end)
            if found is None:
                break
            if count == most:
                return Scan(tuple(lines), count, finished=False)
            start = data.rfind(b"\n", 0, found[0]) + 1
            # RE2's \C takes a line end, too, whatever it was told: the line is the one where the match begins.
            end = data.find(b"\n", found[0])
            end = len(data) if end < 0 else end
            count += 1
            if len(lines) < KEPT:
                lines.append(place.line(start, end, (found[0], min(found[1], end))))
            at = end + 1
        at = max(at, block_end + 1)
    return Scan(tuple(lines), count, finished=True)


def stretches(text: str, lines: tuple[Line, ...], context: int) -> list[Stretch]:
    """The lines with up to `context` neighbours on each side, in order, none twice."""
    found: list[Stretch] = []
    for line in lines:
        last = found[-1] if found else None
        if last is not None and line.start <= last.end:
            found[-1] = Stretch(last.start, last.end, last.line, (*last.matches, line.number))
            continue
        stretch = _around(text, line, context, last.end + 1 if last is not None else 0)
        if last is not None and stretch.start == last.end + 1 and stretch.end - last.start <= STRETCH_CHARS:
            found[-1] = Stretch(last.start, stretch.end, last.line, (*last.matches, line.number))
        else:
            found.append(stretch)
    return found


def _around(text: str, line: Line, context: int, earliest: int) -> Stretch:
    """One line with its neighbours, from `earliest` on."""
    if line.end - line.start > STRETCH_CHARS:
        start = _word_start(text, max(line.start, line.match_start - _AROUND), line.match_start)
        longest = min(line.end, max(line.match_end, start) + _AROUND, start + STRETCH_CHARS)
        return Stretch(start, longest, line.number, (line.number,))
    start, end, number = line.start, line.end, line.number
    for _ in range(context):
        if start > earliest:
            before = max(text.rfind("\n", 0, start - 1) + 1, earliest)
            if end - before <= STRETCH_CHARS:
                start, number = before, number - 1
        if end < len(text):
            after = text.find("\n", end + 1)
            after = len(text) if after < 0 else after
            if after - start <= STRETCH_CHARS:
                end = after
    blank = len(text[start : line.start]) - len(text[start : line.start].lstrip("\n"))
    end = line.end + len(text[line.end : end].rstrip("\n"))
    return Stretch(start + blank, end, number + blank, (line.number,))


def _word_start(text: str, near: int, latest: int) -> int:
    """The beginning of the first word from `near` on, or `near` where none begins before `latest`."""
    blank = text.find(" ", near, latest)
    return near if near == 0 or text[near - 1].isspace() or blank < 0 else blank + 1


class _Place:
    """Turns places in bytes, asked for in order, into characters and line numbers."""

    def __init__(self, data: bytes, *, is_ascii: bool) -> None:
        self._data = data
        self._is_ascii = is_ascii
        self._byte = self._char = 0
        self._number = 1

    def line(self, start: int, end: int, match: tuple[int, int]) -> Line:
        """The line that begins at byte `start`."""
        self._number += self._data.count(b"\n", self._byte, start)
        first, last = self._to(start), self._to(end)
        # RE2's \C may end inside a character, a line never does.
        spans = [first + len(self._data[start:byte].decode("utf-8", "ignore")) for byte in match]
        return Line(self._number, first, last, *spans)

    def _to(self, byte: int) -> int:
        self._char = byte if self._is_ascii else self._char + len(self._data[self._byte : byte].decode("utf-8"))
        self._byte = byte
        return self._char
