"""`/api/documents`: upload, list, read, download, retry, delete.

Owns the JSON shape of a document. Receiving a body is `app.edge.uploads`', what happens to a document `app.ingest`'s.
All but the upload are plain `def` routes: they run on a worker thread.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_body, error_message
from app.edge.inputs import RowId
from app.edge.uploads import Uploaded, receive_uploads
from app.errors import AppError
from app.store import documents
from app.store.documents import DocumentFilters, DocumentRow, StatusFilter

MAX_PAGE = 200

router = APIRouter()


@router.post("/api/documents", status_code=202)
async def upload(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Stores the files of the multipart field `files` and queues them.

    202 `{documents: [row + outcome…], errors: [{name, code, message}…]}`, each file in one of the two. When every file
    failed, the status is the first one's (413, 507) and `error` stands beside `errors`.
    """
    uploaded = await receive_uploads(request, services, user_id)
    body: dict[str, Any] = {
        "documents": [{**shown(services, item.row), "outcome": item.outcome} for item in uploaded if item.row],
        "errors": [_error(services, item, item.error) for item in uploaded if item.error],
    }
    first = next((item.error for item in uploaded if item.error), None)
    if first is None or body["documents"]:
        return JSONResponse(body, 202)
    return JSONResponse({**error_body(services.catalog, first), **body}, first.status)


def list_filters(
    q: Annotated[str | None, Query(max_length=400)] = None,
    status: StatusFilter | None = None,
    collection: RowId | None = None,
) -> DocumentFilters:
    """The conditions of a list: a part of path or title, a state (`look`: what needs a look), a collection."""
    return DocumentFilters(q=q or None, status=status, collection=collection)


@router.get("/api/documents")
def list_documents(
    services: ServicesDep,
    user_id: UserDep,
    filters: Annotated[DocumentFilters, Depends(list_filters)],
    after: Annotated[str | None, Query(max_length=40)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = documents.PAGE_SIZE,
) -> dict[str, Any]:
    """`{documents: [row…], next}`: what needs a look first, then the newest; `next` goes into `after`."""
    page = services.database.read(
        lambda session: documents.list_documents(session, user_id, filters, limit=limit, after=after)
    )
    return {"documents": [shown(services, row) for row in page.rows], "next": page.next}


@router.get("/api/documents/{document_id}")
def get_document(document_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """The row with `text`, the canonical text (null until it was read)."""
    found = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    return {**shown(services, found.row), "text": found.text}


@router.delete("/api/documents/{document_id}", status_code=204)
def delete_document(document_id: RowId, services: ServicesDep, user_id: UserDep) -> None:
    """Takes the document out with its passages; a folder's file stays on disk and is not read again."""
    services.sources.delete_document(user_id, document_id)


@router.post("/api/documents/{document_id}/retry", status_code=202)
def retry_document(document_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Reads a failed document again, or makes missing vectors now; the row as it is then."""
    services.sources.retry(user_id, document_id)
    found = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    return shown(services, found.row)


@router.post("/api/documents/{document_id}/ocr", status_code=202)
def recognise_document(document_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Has the pictures of a PDF's pages read; the row as it is then. Nothing happens where every page has text."""
    services.sources.recognise(user_id, document_id)
    found = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    return shown(services, found.row)


@router.get("/api/documents/{document_id}/file")
def download(document_id: RowId, services: ServicesDep, user_id: UserDep) -> StreamingResponse:
    """The bytes as they came, to be saved and never shown: no type of its own, no script, no frame."""
    stack = ExitStack()
    name, file = stack.enter_context(services.sources.opened(user_id, document_id))
    size = os.fstat(file.fileno()).st_size

    def pieces() -> Generator[bytes]:
        with stack:
            left = size
            while left > 0 and (data := file.read(min(left, 256 * 1024))):
                left -= len(data)
                yield data

    return StreamingResponse(
        pieces(),
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            "Content-Length": str(size),
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


def shown(services: Services, row: DocumentRow) -> dict[str, Any]:
    """A document as the API tells it; `stage` while it is being read."""
    stage = services.progress.get(row.id)
    return {
        "id": row.id,
        "collection_id": row.collection_id,
        "collection": row.collection,
        "source": row.source,
        "path": row.path,
        "title": row.title,
        "mime": row.mime,
        "encoding": row.encoding,
        "bytes": row.bytes,
        "pages": row.pages,
        "empty_pages": list(row.empty_pages),
        "status": row.status,
        "error": _reason(services, row),
        "stage": None if stage is None else {"name": stage.name, "page": stage.page, "pages": stage.pages},
        "chunks": row.chunks,
        "embedded": row.embedded,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
        "indexed_at": None if row.indexed_at is None else row.indexed_at.isoformat(),
    }


def _reason(services: Services, row: DocumentRow) -> dict[str, str] | None:
    if row.error is None:
        return None
    catalog, key = services.catalog, f"errors.ingest_{row.error}" if row.status == "failed" else f"errors.{row.error}"
    facts = {"size": catalog.size(row.bytes), "limit": services.settings.upload_max_mb}
    return {"reason": row.error, "message": catalog.t(key if catalog.has(key) else "errors.ingest_internal", **facts)}


def _error(services: Services, item: Uploaded, error: AppError) -> dict[str, str]:
    return {"name": item.name, "code": error.code, "message": error_message(services.catalog, error)}
