"""A table of a page: each cell in the column it is shown in, also where cells span several.

Called by `html_walk`, and so for Word documents, books and mail. Owns where cells stand (HTML Standard, 4.9.12.1,
Forming a table); how rows are written is `tables`'.
"""

from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

from app.ingest.blocks import BlockKind
from app.ingest.extract.tables import Row, written

TextOf = Callable[[LexborNode], str]

_MAX_ACROSS = 1_000
_MAX_DOWN = 65_534
"""The widest and the longest a cell may be, as browsers have it."""

_MAX_REPEATED = 2_000_000
"""Characters of one table that may be said again for cells that span rows."""


def is_layout(table: LexborNode) -> bool:
    """A table that only places things: it holds another table, or has a single column."""
    if any(inner.mem_id != table.mem_id for inner in table.css("table")):
        return True
    return all(len(row.css("td, th")) <= 1 for row in table.css("tr"))


def table_of(table: LexborNode, text_of: TextOf) -> Iterator[tuple[BlockKind, str]]:
    """Its caption, then its rows; the first one is taken for the header, as Markdown has it.

    A cell that spans rows is said in each of them, since a row is read by itself; one that spans columns is said once,
    but for a header, which names all of them.
    """
    caption = table.css_first("caption")
    if caption is not None and (words := text_of(caption)):
        yield "paragraph", words
    rows = _Rows(text_of)
    filled = [cells for row in table.css("tr") if (cells := rows.cells(row, is_first=not rows.has_header))]
    if filled:
        yield from written(filled[0], filled[1:])


class _Rows:
    """The rows from the top down, and the cells that hang down into the next ones."""

    def __init__(self, text_of: TextOf) -> None:
        self._text_of = text_of
        self._hanging: dict[int, tuple[int, str]] = {}
        """By column: for how many more rows, and what it says."""
        self._section: int | None = None
        self._left = _MAX_REPEATED
        self.has_header = False

    def cells(self, row: LexborNode, *, is_first: bool) -> Row:
        """What a row shows, by column."""
        section = None if row.parent is None else row.parent.mem_id
        if section != self._section:
            self._section, self._hanging = section, {}
        cells = self._from_above()
        taken = set(self._hanging)
        hanging: dict[int, tuple[int, str]] = {}
        column = 0
        for cell in row.css("td, th"):
            while column in taken:
                column += 1
            text = self._text_of(cell)
            across, down = _span(cell, "colspan", _MAX_ACROSS), _span(cell, "rowspan", _MAX_DOWN)
            if text:
                cells[column] = text
                if is_first:
                    cells |= dict.fromkeys(range(column, column + across), text)
            if down > 1:
                hanging |= {place: (down, text if place == column else "") for place in range(column, column + across)}
            column += across
        self._hanging = _hung(self._hanging, hanging)
        self.has_header = self.has_header or bool(cells)
        return dict(sorted(cells.items()))

    def _from_above(self) -> dict[int, str]:
        cells = {column: text for column, (_, text) in self._hanging.items() if text}
        self._left -= sum(map(len, cells.values()))
        return cells if self._left >= 0 else {}


def _hung(*parts: dict[int, tuple[int, str]]) -> dict[int, tuple[int, str]]:
    """What still hangs down below this row."""
    return {column: (rows - 1, text) for part in parts for column, (rows, text) in part.items() if rows > 1}


def _span(cell: LexborNode, name: str, most: int) -> int:
    """How many columns or rows a cell spans; 0 rows are all that are left of the section."""
    raw = (cell.attributes.get(name) or "").strip()
    number = int(raw) if raw.isdecimal() and raw.isascii() and len(raw) < 10 else 1
    return min(most, number) or (most if name == "rowspan" else 1)
