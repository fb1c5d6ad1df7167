"""Lines of a PDF page and how they stand to each other: rows of a table, columns side by side. Pure.

Made by `pdf`, read by `pdf_layout`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a line with no wide gap in it; left and right in points."""

    text: str
    x0: float
    x1: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page: baseline `y` in points from the page's foot, `size` of its font, at least one cell."""

    cells: tuple[Cell, ...]
    y: float
    size: float
    hyphenated: bool = False

    @property
    def text(self) -> str:
        """The whole line."""
        return " ".join(cell.text for cell in self.cells)

    @property
    def x0(self) -> float:
        """Its left edge."""
        return self.cells[0].x0

    @property
    def x1(self) -> float:
        """Its right edge."""
        return self.cells[-1].x1


@dataclass(frozen=True, slots=True)
class PageLines:
    """A page's lines in the order of its content, and its height in points."""

    height: float
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as a picture: `pgm` is netpbm's P5 (a byte a pixel), `scale` its pixels per point, `height` the page's in
    points; the document has `pages`."""

    pgm: bytes
    scale: float
    height: float
    pages: int


_ALIGNED = 3.0
_PROSE_CHARS = 22
"""Mean length from which two cells side by side are columns of prose and not cells of a table."""
_MOST = 0.5
_LEAST_LINES = 6


def are_rows(one: Line, other: Line) -> bool:
    """Whether two lines look like rows of one table: as many cells, the second or last of them aligned."""
    if len(one.cells) < 2 or len(one.cells) != len(other.cells):
        return False
    lefts = abs(one.cells[1].x0 - other.cells[1].x0) < _ALIGNED
    rights = abs(one.cells[-1].x1 - other.cells[-1].x1) < _ALIGNED
    return lefts or rights


def in_columns(lines: Sequence[Line]) -> list[Line]:
    """Lines in reading order: where two columns were drawn row by row, the left one first, then the right one."""
    gutter = _gutter(lines)
    if gutter is None:
        return list(lines)
    ordered: list[Line] = []
    right: list[Line] = []
    for line in lines:
        cut = next((index for index, cell in enumerate(line.cells) if cell.x0 >= gutter - _ALIGNED), None)
        if cut is None and line.x1 > gutter:
            # a line across both columns (a heading) ends what stands above it
            ordered.extend([*right, line])
            right = []
        else:
            _place(line, len(line.cells) if cut is None else cut, ordered, right)
    return [*ordered, *right]


def _place(line: Line, cut: int, left: list[Line], right: list[Line]) -> None:
    if cut > 0:
        left.append(Line(line.cells[:cut], line.y, line.size, line.hyphenated and cut == len(line.cells)))
    if cut < len(line.cells):
        right.append(Line(line.cells[cut:], line.y, line.size, line.hyphenated))


def _gutter(lines: Sequence[Line]) -> float | None:
    """The left edge of the right column, if most lines have two parts of prose that meet there."""
    pairs = [line for line in lines if len(line.cells) == 2]
    if len(pairs) < _LEAST_LINES or len(pairs) < len(lines) * _MOST:
        return None
    edge, count = Counter(round(line.cells[1].x0) for line in pairs).most_common(1)[0]
    aligned = [line for line in pairs if abs(line.cells[1].x0 - edge) < _ALIGNED]
    chars = [sum(len(line.cells[side].text) for line in aligned) / len(aligned) for side in (0, 1)]
    is_prose = min(chars) >= _PROSE_CHARS and count >= len(pairs) * _MOST
    return float(edge) if is_prose else None
