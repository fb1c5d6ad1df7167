"""A chart of an office file as what it shows: its title, and its numbers as a table. Pure.

Called by `pptx`. Reads the values that are kept beside the drawing (ECMA-376, part 1, section 21.2), never the workbook
they came from.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from app.ingest.extract.cell_format import shown
from app.ingest.extract.found import Found
from app.ingest.extract.package import attribute, child, local, under
from app.ingest.extract.tables import Row, written

MAX_POINTS = 5_000
"""Of one series; a chart of more is a cloud that nobody reads number by number."""

_ACROSS = ("cat", "xVal")
_UP = ("val", "yVal", "bubbleSize")


def chart_blocks(chart: Element, page: int | None = None) -> Iterator[Found]:
    """The title as a paragraph; a column for each series, a row for each place along the axis."""
    title = child(chart, "chart", "title")
    words = "" if title is None else " ".join(" ".join(part.text or "" for part in under(title, "t")).split())
    if words:
        yield Found("paragraph", 0, words, "", page)
    series = [found for found in under(chart, "ser") if _first(found, _UP) is not None]
    if not series:
        return
    header: dict[int, str] = {}
    rows: dict[int, dict[int, str]] = {}
    for column, one in enumerate(series, 1):
        header[column] = " ".join(_points(child(one, "tx")).values()) or str(column)
        for at, name in _points(_first(one, _ACROSS)).items():
            rows.setdefault(at, {}).setdefault(0, name)
        for at, value in _points(_first(one, _UP)).items():
            rows.setdefault(at, {})[column] = value
    body: list[Row] = [rows[at] for at in sorted(rows)]
    yield from (Found(kind, 0, text, "", page) for kind, text in written(header, body) if body)


def _first(series: Element, names: tuple[str, ...]) -> Element | None:
    return next((found for name in names if (found := child(series, name)) is not None), None)


def _points(holder: Element | None) -> dict[int, str]:
    """Values by place, as they are shown; of names on several levels the innermost."""
    if holder is None:
        return {}
    level = next(under(holder, "lvl"), holder)
    code = next((found.text or "" for found in under(level, "formatCode")), "General")
    is_number = any(local(found) in ("numRef", "numLit") for found in holder)
    points: dict[int, str] = {}
    for point in under(level, "pt"):
        value, at = child(point, "v"), attribute(point, "idx")
        text = "" if value is None else " ".join((value.text or "").split())
        if text and at.isdecimal() and len(points) < MAX_POINTS:
            points[int(at)] = shown(text, code) if is_number else text
    return points
