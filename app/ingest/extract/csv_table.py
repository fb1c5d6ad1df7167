"""Comma-, semicolon- and tab-separated values: delimiter and header found by content, values left as they are.

Called by `dispatch` for names that promise such a table. What turns out to be none is left to `plain`.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from app.ingest.blocks import Extraction
from app.ingest.extract.found import Found, assembled
from app.ingest.extract.tables import MAX_CELLS, MAX_ROWS, row_of, table_blocks

_DELIMITERS = ("\t", ";", "|", ",")
"""Where two part the rows as evenly, the first: decimal commas are more common than semicolons in every row."""
_SAMPLE_ROWS = 60
_SAMPLE_CHARS = 64 * 1024
_EVEN = 0.7
_MAX_COLUMNS = 500
_MAX_FIELD = 1_000_000
_STRAY_QUOTE_LINES = 100
"""Lines in one field from which its quote is taken for a stray character."""
_SEPARATOR_LINE = re.compile(r"sep=(.)\n")


def extract_csv(text: str, encoding: str, name: str) -> Extraction | None:
    """Reads a table, or gives None for text that is no table. No title: a table names none."""
    csv.field_size_limit(_MAX_FIELD)
    told = _SEPARATOR_LINE.match(text)
    body = text[told.end() :] if told else text
    delimiter = told[1] if told else _delimiter(body)
    if delimiter is None:
        return None
    try:
        rows, is_cut = _rows(body, delimiter, is_quoted=True)
        if any(cell.count("\n") > _STRAY_QUOTE_LINES for row in rows for cell in row):
            rows, is_cut = _rows(body, delimiter, is_quoted=False)
    except csv.Error:
        return None
    if len(rows) < 2 or max(map(len, rows)) > _MAX_COLUMNS:
        return None
    canonical, blocks = assembled(_found(rows, is_cut=is_cut))
    is_tabbed = PurePosixPath(name.lower()).suffix in (".tsv", ".tab")
    mime = "text/tab-separated-values" if is_tabbed else "text/csv"
    return Extraction(canonical, "", mime, encoding, None, None, blocks, cut=is_cut)


def _delimiter(text: str) -> str | None:
    """The character that parts most of the first rows into equally many cells, at least two; quotes are taken for
    plain characters only where they leave no table."""
    sample = text[:_SAMPLE_CHARS]
    lines = [line for line in sample.split("\n") if line.strip()]
    if len(sample) < len(text):
        lines = lines[:-1]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        shares = {
            delimiter: _evenness(csv.reader(lines, delimiter=delimiter, quoting=quoting)) for delimiter in _DELIMITERS
        }
        best = max(_DELIMITERS, key=lambda delimiter: shares[delimiter])
        if shares[best] >= _EVEN:
            return best
    return None


def _evenness(rows: Iterator[list[str]]) -> float:
    """The share of the first rows that have the most common number of cells; 0 where that is one."""
    try:
        widths = [len(row) for row in islice(rows, _SAMPLE_ROWS)]
    except csv.Error:
        return 0
    usual = max(set(widths), key=lambda width: (widths.count(width), width), default=0)
    return widths.count(usual) / len(widths) if usual > 1 else 0


def _rows(text: str, delimiter: str, *, is_quoted: bool) -> tuple[list[list[str]], bool]:
    """Rows up to the limits, and whether there were more."""
    rows: list[list[str]] = []
    cells = 0
    quoting = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    for row in csv.reader(_lines(text), delimiter=delimiter, quoting=quoting):
        if len(rows) >= MAX_ROWS or cells >= MAX_CELLS:
            return rows, True
        rows.append(row)
        cells += len(row)
    return rows, False


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _found(rows: Sequence[Sequence[str]], *, is_cut: bool) -> Iterator[Found]:
    yield from table_blocks(row_of(row) for row in rows)
    if is_cut:
        yield Found("paragraph", 0, f"Only the first {len(rows)} rows of this table were read.")
