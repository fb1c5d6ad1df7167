"""Documents as rows of the library: their facts, how far the worker is with them, what can be done.

Reads what `app.web.library_view` needs beside the row itself. Used by the library's pages and the reader.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.edge.deps import Services
from app.ingest.tesseract import find_tesseract
from app.store import readings, web_pages
from app.store.documents import DocumentRow
from app.store.web_pages import PageRow
from app.web import library_view
from app.web.library_view import FileRow
from app.web.ocr_view import ocr_view
from app.web.web_page_view import page_view


def file_rows(services: Services, rows: Sequence[DocumentRow]) -> list[FileRow]:
    """Documents as rows, in order, each with the page it is being read at. The caller may read them."""
    ids, from_web = [row.id for row in rows], [row.id for row in rows if row.source == "url"]
    known = services.database.read(lambda session: readings.rows_of(session, ids))
    pages = services.database.read(lambda session: web_pages.rows_of(session, from_web)) if from_web else {}
    available = find_tesseract(services.settings.ocr) is not None
    shown = [_file_row(services, row, known.get(row.id, readings.ReadingRow()), available=available) for row in rows]
    return [
        _with_page(services, file, row, pages[row.id]) if row.id in pages else file
        for file, row in zip(shown, rows, strict=True)
    ]


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


def _with_page(services: Services, file: FileRow, row: DocumentRow, page: PageRow) -> FileRow:
    stage, limit = services.progress.get(row.id), services.settings.upload_max_mb
    fetching = stage is not None and stage.name == "fetching"
    view = page_view(row, page, services.catalog, services.clock.now(), limit_mb=limit, fetching=fetching)
    return replace(
        file,
        page=view,
        words=view.status or file.words,
        reason=view.reason or file.reason,
        working=file.working or view.working,
        fingerprint=file.fingerprint + view.state,
    )
