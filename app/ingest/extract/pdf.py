"""PDF: pages to lines with their places (pypdfium2), lines to blocks (`pdf_layout`).

Called by `dispatch` in the extraction child. Lines come in the order of the page's content; `pdf_lines` puts columns
that were drawn row by row one after the other. Nothing of a PDF is run or followed: no forms, scripts or attachments.
"""

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
import pypdfium2.raw  # pyright: ignore[reportMissingTypeStubs]

from app.ingest.blocks import Block, Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.decode import normalise
from app.ingest.extract.pdf_layout import layout
from app.ingest.extract.pdf_lines import Cell, Line, PageLines
from app.ingest.extract.zip_guard import Source, opened, size_of

MIME = "application/pdf"
MAX_PAGES = 10_000

_raw = cast(Any, pypdfium2.raw)
_HYPHENS = ("\x02", "\ufffe")
"""What pdfium leaves where a word was broken at a line's end."""
_SPACES = re.compile(r"\s+")
_CELL_GAP = 1.0
"""In font sizes; word spaces of justified text stay below."""
_CORNERS = tuple(ctypes.c_double() for _ in range(4))
"""Where pdfium writes a box; made once, since a page asks for hundreds. The child has one thread."""
_EMPTY_TITLES = frozenset({"", "untitled", "(anonymous)", "unspecified"})


def extract_pdf(
    source: Source,
    on_page: Callable[[int, int], None] | None = None,
    recognised: Mapping[int, PageLines] | None = None,
) -> Extraction:
    """Reads a PDF. `on_page(done, total)` is called after each page.

    Title: the largest heading of the first page, else the document's own title.

    Args:
        recognised: Lines found in the pictures of pages, by index from 0; they stand in where a page has no text.

    Raises:
        IngestError: encrypted, corrupt, no_text, or too_long for more than `MAX_PAGES` pages.
    """
    document = open_pdf(source)
    try:
        total = len(document)
        if total > MAX_PAGES:
            raise IngestError("too_long")
        pages: list[PageLines] = []
        unread = 0
        for index in range(total):
            try:
                pages.append(_read_page(document, index))
            except pypdfium2.PdfiumError:
                unread += 1
                pages.append(PageLines(0.0, ()))
            if not pages[-1].lines and recognised:
                pages[-1] = recognised.get(index, pages[-1])
            if on_page:
                on_page(index + 1, total)
        text_yield = tuple(sum(len("".join(line.text.split())) for line in page.lines) for page in pages)
        if not any(text_yield):
            raise IngestError("corrupt" if unread == total or _is_cut_off(source) else "no_text")
        blocks = layout(pages)
        text = "\n\n".join(block.text for block in blocks)
        title = _title(blocks, str(cast(Any, document).get_metadata_value("Title")))
        return Extraction(text, title, MIME, None, total, text_yield, blocks)
    finally:
        document.close()


def open_pdf(source: Source) -> pypdfium2.PdfDocument:
    """The document, to be closed by the caller.

    Raises:
        IngestError: encrypted or corrupt.
    """
    try:
        return pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) in (_raw.FPDF_ERR_PASSWORD, _raw.FPDF_ERR_SECURITY)
        raise IngestError("encrypted" if is_locked else "corrupt") from error


def _is_cut_off(source: Source) -> bool:
    """A whole PDF ends with its end mark; pdfium opens many that don't, and finds nothing in them."""
    with opened(source) as file:
        file.seek(max(0, size_of(source) - 2048))
        return b"%%EOF" not in file.read()


def _read_page(document: pypdfium2.PdfDocument, index: int) -> PageLines:
    page = document[index]
    try:
        textpage = page.get_textpage()
        try:
            text = str(textpage.get_text_range())
            return PageLines(float(page.get_height()), tuple(_lines(cast(Any, textpage).raw, text)))
        finally:
            textpage.close()
    finally:
        page.close()


def _lines(raw_page: Any, text: str) -> list[Line]:
    """The page's lines; `text` is indexed as pdfium counts it, so places can be asked for."""
    lines: list[Line] = []
    at = 0
    for source in text.split("\n"):
        stripped = source.strip()
        if stripped:
            first = _raw.FPDFText_GetCharIndexFromTextIndex(raw_page, at + len(source) - len(source.lstrip()))
            x0, y, size = _origin(raw_page, first)
            cells = tuple(_cells(raw_page, stripped, first, x0, size))
            if cells:
                lines.append(Line(cells, y, size, stripped.endswith(_HYPHENS)))
        at += len(source) + 1
    return lines


def _cells(raw_page: Any, text: str, first: int, x0: float, size: float) -> Iterator[Cell]:
    """Parts of a line that stand a gap apart which no word space has: cells of a row, or columns side by side."""
    start, left = 0, x0
    for match in _SPACES.finditer(text):
        before = _box(raw_page, first + match.start() - 1)
        after = _box(raw_page, first + match.end())
        if before and after and after[0] - before[1] > size * _CELL_GAP:
            clean = _clean(text[start : match.start()])
            if clean:
                yield Cell(clean, left, before[1])
            start, left = match.end(), after[0]
    clean = _clean(text[start:])
    last = _box(raw_page, first + len(text) - 1)
    if clean:
        yield Cell(clean, left, last[1] if last else left)


def _clean(text: str) -> str:
    return normalise(text.replace("\ufffe", "").replace("\x02", "")).strip()


def _origin(raw_page: Any, index: int) -> tuple[float, float, float]:
    """Left, baseline and font size (points on the page) of a character."""
    x, y = ctypes.c_double(), ctypes.c_double()
    _raw.FPDFText_GetCharOrigin(raw_page, index, x, y)
    matrix = _raw.FS_MATRIX()
    scale = 1.0
    if _raw.FPDFText_GetMatrix(raw_page, index, matrix):
        scale = (matrix.c**2 + matrix.d**2) ** 0.5 or 1.0
    return x.value, y.value, float(_raw.FPDFText_GetFontSize(raw_page, index)) * scale


def _box(raw_page: Any, index: int) -> tuple[float, float] | None:
    """Left and right of a character's glyph; None for one that pdfium made up."""
    if not _raw.FPDFText_GetCharBox(raw_page, index, *_CORNERS):
        return None
    return _CORNERS[0].value, _CORNERS[1].value


def _title(blocks: tuple[Block, ...], own: str) -> str:
    headings = [block for block in blocks if block.kind == "heading" and block.page == 1]
    if headings:
        return min(headings, key=lambda block: block.level).label
    own = " ".join(normalise(own).split())
    return "" if own.lower() in _EMPTY_TITLES else own
