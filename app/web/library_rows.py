"""Documents as rows of the library: their facts, how far the worker is with them, what can be done.

Reads what `app.web.library_view` needs beside the row itself. Used by the library's pages and the reader.
"""

from collections.abc import Sequence

from app.edge.deps import Services
from app.ingest.tesseract import find_tesseract
from app.store import readings
from app.store.documents import DocumentRow
from app.web import library_view
from app.web.library_view import FileRow
from app.web.ocr_view import ocr_view


def file_rows(services: Services, rows: Sequence[DocumentRow]) -> list[FileRow]:
    """Documents as rows, in order, each with the page it is being read at. The caller may read them."""
    known = services.database.read(lambda session: readings.rows_of(session, [row.id for row in rows]))
    available = find_tesseract(services.settings.ocr) is not None
    return [_file_row(services, row, known.get(row.id, readings.ReadingRow()), available=available) for row in rows]


def file_row(services: Services, row: DocumentRow) -> FileRow:
    """One document as a row."""
    return file_rows(services, [row])[0]


def _file_row(services: Services, row: DocumentRow, reading: readings.ReadingRow, *, available: bool) -> FileRow:
    stage = services.progress.get(row.id)
    return library_view.file_row(
        row,
        services.catalog,
        services.clock.now(),
        upload_max_mb=services.settings.upload_max_mb,
        stage=stage,
        ocr=ocr_view(row, reading, services.catalog, available=available, stage=stage),
    )
