"""A page of a PDF as a grey picture, for recognising its text. Runs in the extraction child (`child`), called by it.

Owns how sharp and how large a picture is; recognising is `app.ingest.tesseract`'s. The picture is a portable grey map
(netpbm's P5: a header and one byte a pixel), which needs no encoder here and no decoder worth attacking there.
"""

from typing import Any, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]

from app.ingest.errors import IngestError
from app.ingest.extract.pdf import MAX_PAGES, open_pdf
from app.ingest.extract.pdf_lines import PageImage
from app.ingest.extract.zip_guard import Source

DPI = 200
MAX_PIXELS = 16_000_000
"""A3 at 200 dpi has 7.7 million. A page declared larger is drawn coarser."""
_POINTS = 72.0


def page_image(source: Source, index: int) -> PageImage:
    """Draws the page `index` (from 0).

    Raises:
        IngestError: encrypted, corrupt (also where the page can't be drawn, or there is none), too_long.
    """
    document = open_pdf(source)
    try:
        pages = len(document)
        if pages > MAX_PAGES:
            raise IngestError("too_long")
        if index >= pages:
            raise IngestError("corrupt")
        page = document[index]
        try:
            width, height = float(page.get_width()), float(page.get_height())
            scale = DPI / _POINTS
            if width * height * scale**2 > MAX_PIXELS:
                scale = (MAX_PIXELS / (width * height)) ** 0.5
            bitmap = cast(Any, page).render(scale=scale, grayscale=True)
            try:
                return PageImage(_pgm(bitmap), scale, height, pages)
            finally:
                bitmap.close()
        finally:
            page.close()
    except pypdfium2.PdfiumError as error:
        raise IngestError("corrupt") from error
    finally:
        document.close()


def _pgm(bitmap: Any) -> bytes:
    pixels = memoryview(bitmap.buffer).cast("B")
    columns, rows, stride = int(bitmap.width), int(bitmap.height), int(bitmap.stride)
    lines = (pixels[start : start + columns] for start in range(0, rows * stride, stride))
    return b"P5\n%d %d\n255\n" % (columns, rows) + b"".join(lines)
