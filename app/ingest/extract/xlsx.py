"""Workbooks: each sheet under its name, its tables with their headers, numbers and dates as they are shown.

Called by `dispatch` in the extraction child. Sheets are streamed. Hidden sheets are read and marked: whoever may read
the file can show them. A formula gives the value stored with it, and itself where none is stored. `sheet_cells` reads
a cell; `tables` writes the rows.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.found import Found, assembled, heading
from app.ingest.extract.package import Package, attribute, child, local, open_package, reference, under
from app.ingest.extract.sheet_cells import CellReader, merged_down, place_of
from app.ingest.extract.tables import MAX_CELLS, MAX_ROWS, Row, table_blocks
from app.ingest.extract.zip_guard import Source

MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_NOTES = frozenset({"comments", "threadedComment"})
_MAX_NOTES = 2_000


def extract_xlsx(source: Source) -> Extraction:
    """Reads a workbook. Title: the one in its properties.

    Raises:
        IngestError: corrupt, encrypted, no_text, or too_long for a zip bomb.
    """
    with open_package(source) as package:
        reader = _Workbook(package)
        found = list(reader.found())
        if all(block.kind == "heading" for block in found):
            raise IngestError("no_text")
        text, blocks = assembled(found)
        return Extraction(text, package.own_title(), MIME, None, None, None, blocks, cut=reader.is_cut)


class _Workbook:
    """The sheets, and how many rows and cells may still be read."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._part = package.main_part()
        self._book = package.tree(self._part)
        self._relations = package.relations(self._part)
        properties = child(self._book, "workbookPr")
        is_1904 = properties is not None and attribute(properties, "date1904") in ("1", "true")
        parts = {relation.kind: relation.target for relation in self._relations.values()}
        self._cells = CellReader(package, parts.get("sharedStrings"), parts.get("styles"), from_1904=is_1904)
        self._rows_left, self._cells_left = MAX_ROWS, MAX_CELLS
        self.is_cut = False

    def found(self) -> Iterator[Found]:
        """Everything, sheet by sheet in the order of the tabs."""
        for sheet in under(self._book, "sheet"):
            relation = self._relations.get(reference(sheet))
            if relation is None or relation.kind != "worksheet" or relation.target not in self._package.names:
                continue
            blocks = [*table_blocks(self._rows(relation.target)), *self._notes(relation.target)]
            if self.is_cut:
                blocks.append(Found("paragraph", 0, "The rest of this sheet was not read: it is too long."))
            if blocks:
                is_hidden = attribute(sheet, "state") in ("hidden", "veryHidden")
                name = attribute(sheet, "name")
                yield heading(1, f"{name} (hidden sheet)" if is_hidden else name)
                yield from blocks

    def _rows(self, part: str) -> Iterator[Row]:
        """A sheet's rows; an empty one stands for every gap. Cells merged over rows are repeated in each."""
        merged = merged_down(self._package.chunks(part))
        carried: dict[int, tuple[int, str]] = {}
        last = 0
        for element in self._package.elements(part, "sheetData", "row"):
            number = _number(element.get("r"), last + 1)
            if self._rows_left <= 0 or self._cells_left <= 0:
                self.is_cut = True
                return
            cells = self._row(element)
            if merged:
                _carry(cells, number, merged, carried)
            if number > last + 1 and last:
                yield {}
            yield cells
            last = number
            self._rows_left -= 1
            self._cells_left -= len(element)

    def _row(self, element: Element) -> dict[int, str]:
        cells: dict[int, str] = {}
        column = -1
        for cell in element:
            if local(cell) != "c":
                continue
            reference = cell.get("r")
            column = place_of(reference)[0] if reference else column + 1
            text = self._cells.text(cell)
            if text:
                cells[column] = text
        return cells

    def _notes(self, part: str) -> Iterator[Found]:
        """What was written beside cells, with the cell's name."""
        relations = [found for found in self._package.relations(part).values() if found.kind in _NOTES]
        is_threaded = any(relation.kind == "threadedComment" for relation in relations)
        lines: list[str] = []
        for relation in relations:
            if relation.target not in self._package.names or (is_threaded and relation.kind == "comments"):
                continue
            for note in self._package.tree(relation.target).iter():
                if local(note) in _NOTES | {"comment"} and note.get("ref"):
                    words = " ".join("".join(t.text or "" for t in note.iter() if local(t) in ("t", "text")).split())
                    lines.append(f"- {note.get('ref')}: {words}")
        if lines:
            yield Found("paragraph", 0, "Notes on cells:")
            yield Found("list", 0, "\n".join(lines[:_MAX_NOTES]))


def _carry(
    cells: dict[int, str], row: int, merged: dict[tuple[int, int], int], carried: dict[int, tuple[int, str]]
) -> None:
    """Fills in what a merged cell above says, and keeps what one that begins here says."""
    for column, (last, text) in list(carried.items()):
        if row > last:
            del carried[column]
        elif cells:
            cells.setdefault(column, text)
    for column, text in cells.items():
        last = merged.get((column, row))
        if last is not None:
            carried[column] = (last, text)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdigit() else otherwise
