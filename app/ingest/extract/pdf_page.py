"""A page of a PDF as a picture, with a passage boxed and its supporting sentence tinted. Runs in a limited child.

Called by `page_child`, and by tests in process. Owns how large a picture is, what is drawn on it, and asking pdfium
where letters stand; which letters are the passage's is `pdf_place`'s to say. A passage that begins on an earlier page
is followed to this one. Nothing of a PDF is run: no forms, scripts or annotations' actions.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, BinaryIO, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
import pypdfium2.raw  # pyright: ignore[reportMissingTypeStubs]

from app.ingest.errors import IngestError
from app.ingest.extract.drawn import Asked, Drawn
from app.ingest.extract.pdf_boxes import Box, areas, rows
from app.ingest.extract.pdf_picture import Picture
from app.ingest.extract.pdf_place import Letters, find_runs, letters_of

LONGEST_SIDE = 1600
"""Pixels; an A4 page is then 1,131 wide, almost two for each of the column's 608."""
MAX_SCALE = 4.0
_MAX_CHARS = 60_000
_FOLLOWED = 4
"""Pages on which a passage is looked for."""
_PADDING = 5
_LINE = 2
_RULE = 6

_raw = cast(Any, pypdfium2.raw)


def draw_page(file: BinaryIO, asked: Asked) -> Drawn:
    """Draws a page.

    Raises:
        IngestError: encrypted, or corrupt (also where the page can't be drawn or is not there).
    """
    document: Any = None
    try:
        document = cast(Any, pypdfium2.PdfDocument(file))
        pages = len(document)
        number, found = _chosen(document, asked, pages)
        if not 1 <= number <= pages:
            raise IngestError("corrupt")
        return _drawn(document, number, found)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) in (_raw.FPDF_ERR_PASSWORD, _raw.FPDF_ERR_SECURITY)
        raise IngestError("encrypted" if is_locked else "corrupt") from error
    finally:
        if document is not None:
            document.close()


@dataclass(frozen=True, slots=True)
class _Found:
    """Indexes of a page's characters: the passage's in its order, and those of them that support."""

    passage: tuple[int, ...] = ()
    support: tuple[int, ...] = ()


def _chosen(document: Any, asked: Asked, pages: int) -> tuple[int, _Found]:
    """The page to draw and what of the passage is on it."""
    on_pages = dict(_followed(document, asked, pages)) if asked.passage else {}
    if asked.page:
        return asked.page, on_pages.get(asked.page, _Found())
    number = next((number for number, found in on_pages.items() if found.support), max(1, asked.first))
    return number, on_pages.get(number, _Found())


def _followed(document: Any, asked: Asked, pages: int) -> Iterator[tuple[int, _Found]]:
    """The passage's characters on the pages it may reach: from page to page, what is left of it is looked for."""
    first = max(1, asked.first)
    last = min(pages, first + _FOLLOWED - 1)
    if not first <= (asked.page or first) <= last:
        return
    low, high = asked.support or (0, 0)
    rest = letters_of(asked.passage)
    for number in range(first, (asked.page or last) + 1):
        page = letters_of(_characters(document, number - 1))
        runs = find_runs(page, rest)
        pairs = [(run.passage_at + at, run.page_at + at) for run in runs for at in range(run.length)]
        yield (
            number,
            _Found(
                tuple(page.origins[place] for _, place in pairs),
                tuple(page.origins[place] for at, place in pairs if low <= rest.origins[at] < high),
            ),
        )
        end = runs[-1].passage_end if runs else 0
        rest = Letters(rest.text[end:], rest.origins[end:], rest.begins[end:])


def _characters(document: Any, index: int) -> list[str]:
    page = document[index]
    try:
        text = page.get_textpage()
        try:
            count = min(text.count_chars(), _MAX_CHARS)
            return [_character(_raw.FPDFText_GetUnicode(text.raw, at)) for at in range(count)]
        finally:
            text.close()
    finally:
        page.close()


def _character(code: int) -> str:
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def _drawn(document: Any, number: int, found: _Found) -> Drawn:
    page = document[number - 1]
    try:
        scale = _scale(float(page.get_width()), float(page.get_height()))
        bitmap = page.render(
            scale=scale, may_draw_forms=False, rev_byteorder=True, force_bitmap_format=_raw.FPDFBitmap_BGR
        )
        try:
            picture = _picture(bitmap)
        finally:
            bitmap.close()
        boxed = _mark(page, picture, found)
        return Drawn(picture.png(), picture.width, picture.height, boxed, len(document), number)
    finally:
        page.close()


def _scale(width: float, height: float) -> float:
    """Pixels per point.

    Raises:
        IngestError: corrupt, for a page without a size.
    """
    longest = max(width, height)
    if not isfinite(longest) or min(width, height) <= 0:
        raise IngestError("corrupt")
    return min(MAX_SCALE, LONGEST_SIDE / longest)


def _picture(bitmap: Any) -> Picture:
    """The bitmap's pixels without the bytes that pad its rows."""
    row_bytes, stride = 3 * bitmap.width, bitmap.stride
    raw = memoryview(bitmap.buffer).cast("B")
    pixels = bytearray().join(raw[at : at + row_bytes] for at in range(0, stride * bitmap.height, stride))
    return Picture(bitmap.width, bitmap.height, pixels)


def _mark(page: Any, picture: Picture, found: _Found) -> bool:
    """Tints the support and frames the passage; whether there was anything to frame."""
    if not found.passage:
        return False
    text = page.get_textpage()
    try:
        boxes = dict(_boxes(page, text.raw, picture, found.passage))
    finally:
        text.close()
    for box in rows(boxes[index] for index in found.support if index in boxes):
        picture.tint(box)
    framed = areas(rows(boxes[index] for index in found.passage if index in boxes))
    for left, top, right, bottom in framed:
        around = Box(left - _PADDING, top - _PADDING, right + _PADDING, bottom + _PADDING)
        picture.frame(around, line=_LINE, rule=_RULE)
    return bool(framed)


def _boxes(page: Any, text: Any, picture: Picture, indexes: Sequence[int]) -> Iterator[tuple[int, Box]]:
    """Where characters stand on the picture; those that pdfium made up stand nowhere."""
    area = _raw.FS_RECTF()
    for index in dict.fromkeys(indexes):
        if _raw.FPDFText_GetLooseCharBox(text, index, ctypes.byref(area)):
            one = _pixel(page, picture, area.left, area.top)
            other = _pixel(page, picture, area.right, area.bottom)
            xs, ys = sorted((one[0], other[0])), sorted((one[1], other[1]))
            if xs[1] > xs[0] and ys[1] > ys[0]:
                yield index, Box(xs[0], ys[0], xs[1], ys[1])


def _pixel(page: Any, picture: Picture, x: float, y: float) -> tuple[int, int]:
    """A place of the page, its rotation and crop box applied."""
    across, down = ctypes.c_int(), ctypes.c_int()
    _raw.FPDF_PageToDevice(page.raw, 0, 0, picture.width, picture.height, 0, x, y, across, down)
    return across.value, down.value
