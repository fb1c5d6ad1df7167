"""Rectangles of single letters joined into those of words, lines and passages. Pure.

Called by `pdf_page`. Works in pixels of the drawn page, whichever way its text runs: letters that follow each other and
stand in one row, or one above the other in rotated text, become one rectangle.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_SAME_ROW = 0.5
"""Share of the smaller letter's height by which two of a row overlap."""
_WORD_GAP = 1.6
_LINE_GAP = 2.2
"""In letter heights: wider gaps part words from cells, and paragraphs' lines from each other."""


class Box(NamedTuple):
    """Left, top, right and bottom in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def thickness(self) -> float:
        """The smaller side: the height of a row of letters, however it is turned."""
        return min(self.right - self.left, self.bottom - self.top)


def joined(one: Box, other: Box) -> Box:
    """The smallest box around both."""
    return Box(
        min(one.left, other.left),
        min(one.top, other.top),
        max(one.right, other.right),
        max(one.bottom, other.bottom),
    )


def rows(letters: Iterable[Box]) -> list[Box]:
    """Letters in reading order as one box for each stretch of a row."""
    found: list[Box] = []
    size = 0.0
    for letter in letters:
        height = max(letter.right - letter.left, letter.bottom - letter.top)
        if found and _is_next(found[-1], letter, max(size, height)):
            found[-1] = joined(found[-1], letter)
        else:
            found.append(letter)
        size = height
    return found


def areas(parts: Sequence[Box]) -> list[Box]:
    """Boxes of rows as one for each block of text: a passage that goes on in the next column has two."""
    found: list[Box] = []
    for part in parts:
        if found and _is_below(found[-1], part):
            found[-1] = joined(found[-1], part)
        else:
            found.append(part)
    return _merged(found)


def _is_next(row: Box, letter: Box, size: float) -> bool:
    across = _shared(row.top, row.bottom, letter.top, letter.bottom)
    along = _gap(row.left, row.right, letter.left, letter.right)
    if across >= _SAME_ROW * min(row.bottom - row.top, letter.bottom - letter.top) and along <= _WORD_GAP * size:
        return True
    across = _shared(row.left, row.right, letter.left, letter.right)
    along = _gap(row.top, row.bottom, letter.top, letter.bottom)
    is_upright = row.bottom - row.top > 1.5 * (row.right - row.left) or row.right - row.left <= 1.5 * size
    stands_on = across >= 0.8 * min(row.right - row.left, letter.right - letter.left) and along <= 0.3 * size
    return is_upright and stands_on


def _is_below(area: Box, part: Box) -> bool:
    """Whether a row belongs to the block so far: beside its last line, or under it."""
    gap = _LINE_GAP * part.thickness
    overlaps = _shared(area.left, area.right, part.left, part.right) > 0
    near = _gap(area.top, area.bottom, part.top, part.bottom) <= gap
    beside = _shared(area.top, area.bottom, part.top, part.bottom) > 0
    return (overlaps and near) or (beside and _gap(area.left, area.right, part.left, part.right) <= 4 * gap)


def _merged(found: Sequence[Box]) -> list[Box]:
    """Blocks that overlap are one."""
    kept: list[Box] = []
    for area in found:
        while hit := next((other for other in kept if _overlap(other, area)), None):
            kept.remove(hit)
            area = joined(hit, area)
        kept.append(area)
    return kept


def _overlap(one: Box, other: Box) -> bool:
    return (
        _shared(one.left, one.right, other.left, other.right) > 0
        and _shared(one.top, one.bottom, other.top, other.bottom) > 0
    )


def _shared(low: float, high: float, other_low: float, other_high: float) -> float:
    return min(high, other_high) - max(low, other_low)


def _gap(low: float, high: float, other_low: float, other_high: float) -> float:
    return max(0.0, -_shared(low, high, other_low, other_high))
