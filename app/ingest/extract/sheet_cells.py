"""One cell of a sheet: its type, its shared string, its number format; and where cells are merged.

Called by `xlsx` only.
"""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element

from app.ingest.extract.cell_format import BUILT_IN, shown
from app.ingest.extract.package import Package, attribute, child, local, under

_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_MERGE = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]{0,80}?ref=[\"']([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})[\"']")
_OVERLAP = 128
_MAX_MERGES = 50_000


class CellReader:
    """Reads cells; holds the workbook's strings and formats."""

    def __init__(self, package: Package, strings: str | None, styles: str | None, *, from_1904: bool) -> None:
        self._strings: list[str] = []
        if strings is not None and strings in package.names:
            self._strings = [_plain(item) for item in package.elements(strings, "sst", "si")]
        self._formats = _formats(package.tree(styles)) if styles is not None and styles in package.names else []
        self._from_1904 = from_1904

    def text(self, cell: Element) -> str:
        """What a cell shows, on one line."""
        kind = cell.get("t", "n")
        raw = formula = ""
        for part in cell:
            name = local(part)
            if name == "v":
                raw = (part.text or "").strip()
            elif name == "f":
                formula = _one_line(part.text)
            elif name == "is" and kind == "inlineStr":
                return _one_line(_plain(part))
        if not raw:
            return f"={formula}" if formula else ""
        if kind == "s":
            index = int(raw)
            return _one_line(self._strings[index]) if 0 <= index < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if raw == "1" else "FALSE"
        if kind == "n":
            return shown(raw, self._format(cell), from_1904=self._from_1904)
        return _one_line(raw)

    def _format(self, cell: Element) -> str:
        style = cell.get("s", "")
        index = int(style) if style.isdigit() else 0
        return self._formats[index] if index < len(self._formats) else "General"


def place_of(reference: str) -> tuple[int, int]:
    """Column (0-based) and row (1-based) of a cell's name.

    Raises:
        ValueError: it is none.
    """
    match = _PLACE.fullmatch(reference)
    if match is None:
        raise ValueError(reference)
    return _column(match[1]), int(match[2])


def merged_down(chunks: Iterable[bytes]) -> dict[tuple[int, int], int]:
    """Cells merged over several rows: the first one's place to the last row. They stand behind the rows in the part,
    so they are looked for in its bytes before the rows are read."""
    merged: dict[tuple[int, int], int] = {}
    tail = b""
    for data in chunks:
        window = tail + data
        for match in _MERGE.finditer(window) if b"mergeCell" in window else ():
            first, last = int(match[2]), int(match[3])
            if last > first and len(merged) < _MAX_MERGES:
                merged[_column(match[1].decode()), first] = last
        tail = window[-_OVERLAP:]
    return merged


def _column(letters: str) -> int:
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return column - 1


def _plain(item: Element) -> str:
    """A string's text, its runs joined, without the reading aids of East Asian scripts."""
    parts = (run if local(run) == "t" else child(run, "t") for run in item if local(run) in ("t", "r"))
    return "".join(part.text or "" for part in parts if part is not None)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("_x000D_", " ").split())


def _formats(styles: Element) -> list[str]:
    """Format codes by the number cells name them with."""
    own = {attribute(found, "numFmtId"): attribute(found, "formatCode") for found in under(styles, "numFmt")}
    cell_formats = child(styles, "cellXfs")
    if cell_formats is None:
        return []
    numbers = [attribute(found, "numFmtId") or "0" for found in cell_formats]
    return [own.get(number) or BUILT_IN.get(int(number), "General") for number in numbers]
