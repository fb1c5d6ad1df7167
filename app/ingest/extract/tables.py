"""Rows of cells to blocks that a reader and a model can follow: each part of a long table says its columns again. Pure.

Called by `xlsx`, `csv_table`, `pptx` and `html_table`. Owns where a table begins, which row is its header, and how rows
are written; no file format.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from app.ingest.blocks import BlockKind
from app.ingest.cutting import count_tokens
from app.ingest.extract.found import Found

Row = Mapping[int, str]
"""Cells that hold something, by column (0-based)."""

MAX_ROWS = 100_000
MAX_CELLS = 1_000_000
"""Of one document; what lies behind them is left out, and the text says so."""

_WHOLE = 440
"""Estimated tokens up to which a table is one block; a chunk takes 480."""
_PART = 280
_PART_OF_WIDE = 420
_SAMPLE = 20
_HEADER_CHARS = 80
_SPARSE = 4
"""Places per filled cell from which a grid would be mostly empty."""

_VALUE = re.compile(r"[\s€$£%+\-−(]*\d[\d.,:/'\s\-−+TZ]*[\s€$£%)]*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SWITCH = frozenset({"true", "false", "yes", "no"})


def row_of(cells: Sequence[str]) -> dict[int, str]:
    """A list of cells as a row."""
    return {column: clean for column, cell in enumerate(cells) if (clean := " ".join(cell.split()))}


def table_blocks(rows: Iterable[Row], page: int | None = None) -> Iterator[Found]:
    """Tables of a sheet: after an empty row comes another one, unless it has no header and fits the columns above.

    A line that stands alone above a table is a paragraph. The header is the first row whose cells all read like names;
    without one the columns are called A, B, C.
    """
    header: Row | None = None
    open_rows: list[Row] = []
    for region in _regions(rows):
        lead, body = _without_lead(region)
        own = _header(body, header)
        is_more = header is not None and own is None and not lead and _columns(body) <= header.keys()
        if is_more:
            open_rows.extend(body)
            continue
        yield from _table(header, open_rows, page)
        yield from (Found("paragraph", 0, next(iter(row.values())), "", page) for row in lead)
        if own is not None or not body or (header and not _columns(body) <= header.keys()):
            header = own
        open_rows = body[1:] if own is not None else body
    yield from _table(header, open_rows, page)


def _table(header: Row | None, body: list[Row], page: int | None) -> Iterator[Found]:
    if body:
        yield from (Found(kind, 0, text, "", page) for kind, text in written(header, body))


def is_header(first: Row, below: Sequence[Row]) -> bool:
    """Whether a row names the columns of those below it."""
    names = list(first.values())
    if len(names) < 2 or len({name.casefold() for name in names}) < len(names):
        return False
    if any(len(name) > _HEADER_CHARS for name in names) or len(first) * 2 < len(_columns(below)):
        return False
    leftmost = min(first)
    return not any(
        is_value(name) and not (column != leftmost and _YEAR.fullmatch(name)) for column, name in first.items()
    )


def is_value(cell: str) -> bool:
    """A number, an amount, a date, a switch: what a header does not hold."""
    return _VALUE.fullmatch(cell) is not None or cell.casefold() in _SWITCH


def column_name(column: int) -> str:
    """What a spreadsheet calls a column: 0 is A, 26 is AA."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(65 + letter) + name
    return name


def _regions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    region: list[Row] = []
    for row in rows:
        if row:
            region.append(row)
        elif region:
            yield region
            region = []
    if region:
        yield region


def _columns(rows: Iterable[Row]) -> set[int]:
    return {column for row in rows for column in row}


def _without_lead(region: list[Row]) -> tuple[list[Row], list[Row]]:
    """Parts single cells above a table from it; a region of a single column is all table."""
    if len(region) > 1 and len(_columns(region)) == 1:
        return [], region
    start = next((index for index, row in enumerate(region) if len(row) > 1), len(region))
    return region[:start], region[start:]


def _header(body: list[Row], above: Row | None) -> Row | None:
    """The body's own header; below another table only one that differs in kind from what it heads."""
    below = body[1 : _SAMPLE + 1]
    if not below or not is_header(body[0], below):
        return None
    if above is not None and body[0].keys() <= above.keys():
        is_clear = any(is_value(row[column]) for row in below for column in row if column in body[0])
        return body[0] if is_clear else None
    return body[0]


def written(header: Row | None, body: Sequence[Row]) -> Iterator[tuple[BlockKind, str]]:
    """One table whose header is known, or has none: in parts that fit a passage, each under the header."""
    columns = sorted(_columns(body) | (header or {}).keys())
    if len(columns) == 1:
        if header is not None:
            body = (header, *body)
        yield from _parts("list", "", [f"- {cell}" for row in body for cell in row.values()])
        return
    if header is None and len(body) == 1:
        yield "paragraph", " · ".join(body[0][column] for column in columns)
        return
    names = {column: (header or {}).get(column, "") if header else column_name(column) for column in columns}
    head = _line(names, columns) + "\n|" + " --- |" * len(columns)
    filled = sum(map(len, body))
    widest = max((count_tokens(_line(row, columns)) for row in islice(body, _SAMPLE)), default=0)
    is_sparse = len(columns) * len(body) > _SPARSE * filled + _WHOLE
    if is_sparse or count_tokens(head) + widest > _PART_OF_WIDE:
        yield from _records(names, body)
    else:
        yield from _parts("table", head, [_line(row, columns) for row in body])


def _line(row: Row, columns: Sequence[int]) -> str:
    return "| " + " | ".join(row.get(column, "").replace("|", "\\|") for column in columns) + " |"


def _records(names: Row, body: Iterable[Row]) -> Iterator[tuple[BlockKind, str]]:
    """Each row by itself, its cells one below the other: for tables too wide or too empty for a grid."""
    for row in body:
        cells = (f"- {names.get(column) or column_name(column)}: {row[column]}" for column in sorted(row))
        yield "list", "\n".join(cells)


def _parts(kind: BlockKind, head: str, lines: list[str]) -> Iterator[tuple[BlockKind, str]]:
    """The lines in blocks that each fit a passage, under the same head."""
    sizes = [count_tokens(line) for line in lines]
    cost = count_tokens(head)
    goal = _WHOLE if cost + sum(sizes) <= _WHOLE else min(_PART_OF_WIDE, max(_PART, 2 * cost))
    part: list[str] = [head] if head else []
    size, least = cost, len(part)
    for line, step in zip(lines, sizes, strict=True):
        if len(part) > least and size + step > goal:
            yield kind, "\n".join(part)
            part, size = part[:least], cost
        part.append(line)
        size += step
    if part:
        yield kind, "\n".join(part)
