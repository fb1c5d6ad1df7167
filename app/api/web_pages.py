"""`/api/documents/url` and `/api/documents/{id}/refresh`: documents that come from an address.

Owns the JSON shape of a page. What happens to it is `app.ingest.fetch_pages`'; a document's own shape is
`app.api.documents`'. Plain `def` routes: they run on a worker thread, and none of them waits for another server.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from app.api.documents import shown
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_body, error_message
from app.edge.inputs import InputText, RowId
from app.errors import AppError, NotFoundError
from app.ingest.fetch_pages import MAX_ADDRESSES, AddedPage
from app.store import documents, web_pages
from app.store.engine import Session
from app.store.web_pages import PageRow, Refresh

router = APIRouter()

Address = Annotated[InputText, Field(max_length=8192)]


class NewPages(BaseModel):
    """The body of POST `/api/documents/url`."""

    model_config = ConfigDict(extra="forbid")

    urls: list[Address] = Field(max_length=MAX_ADDRESSES)
    collection: RowId | None = None


class RefreshChoice(BaseModel):
    """The body of PUT `/api/documents/{id}/refresh`."""

    model_config = ConfigDict(extra="forbid")

    every: Refresh


@router.post("/api/documents/url", status_code=202)
def add_pages(asked: NewPages, services: ServicesDep, user_id: UserDep) -> Response:
    """Queues a fetch of every address.

    202 `{documents: [row + outcome…], errors: [{url, code, message}…]}`, each address in one of the two; `outcome` is
    `added`, or `unchanged` where it is in the library already. When every address is refused, the status is 422 and
    `error` stands beside `errors`.
    """
    added = services.pages.add(user_id, asked.urls, asked.collection)
    ids = [item.document_id for item in added if item.document_id is not None]
    rows = _rows(services, user_id, ids)
    body: dict[str, Any] = {
        "documents": [
            {**rows[item.document_id], "outcome": item.outcome} for item in added if item.document_id in rows
        ],
        "errors": [_error(services, item, item.error) for item in added if item.error is not None],
    }
    first = next((item.error for item in added if item.error is not None), None)
    if first is None or body["documents"]:
        return JSONResponse(body, 202)
    return JSONResponse({**error_body(services.catalog, first), **body}, first.status)


@router.post("/api/documents/url/refresh", status_code=202)
def refresh_all(services: ServicesDep, user_id: UserDep) -> dict[str, int]:
    """Has every page fetched again: `{queued}`."""
    return {"queued": services.pages.refresh_all(user_id)}


@router.post("/api/documents/{document_id}/refresh", status_code=202)
def refresh(document_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Has one page fetched again; the row as it is until then."""
    services.pages.refresh(user_id, document_id)
    return _row(services, user_id, document_id)


@router.put("/api/documents/{document_id}/refresh")
def set_refresh(document_id: RowId, asked: RefreshChoice, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Chooses how often the page is fetched again by itself: `off`, `daily` or `weekly`."""
    services.pages.set_refresh(user_id, document_id, asked.every)
    return _row(services, user_id, document_id)


@router.get("/api/documents/{document_id}/page")
def get_page(document_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """What is known of the page a document was fetched from.

    Raises:
        NotFoundError: also for a document that has no address.
    """
    found = services.database.read(lambda session: web_pages.get_pages(session, user_id, [document_id]))
    if document_id not in found:
        raise NotFoundError
    return page_fields(services, found[document_id])


def page_fields(services: Services, page: PageRow) -> dict[str, Any]:
    """A page as the API tells it; times in ISO 8601, null where it has not come to that."""
    times = {name: getattr(page, name) for name in ("fetched_at", "checked_at", "next_check_at", "gone_at")}
    limit = services.settings.upload_max_mb
    message = services.catalog.t(f"errors.ingest_{page.error}", limit=limit) if page.error else None
    return {
        "url": page.url,
        "final_url": page.final_url,
        "refresh": page.refresh,
        "checking": page.is_checking,
        "error": {"reason": page.error, "message": message} if page.error else None,
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
    }


def _row(services: Services, user_id: int, document_id: int) -> dict[str, Any]:
    return _rows(services, user_id, [document_id])[document_id]


def _rows(services: Services, user_id: int, ids: list[int]) -> dict[int, dict[str, Any]]:
    """Documents with their `page`, by id."""

    def work(session: Session) -> tuple[list[documents.DocumentRow], dict[int, PageRow]]:
        return documents.get_rows(session, user_id, ids), web_pages.get_pages(session, user_id, ids)

    rows, pages = services.database.read(work)
    return {row.id: {**shown(services, row), "page": page_fields(services, pages[row.id])} for row in rows}


def _error(services: Services, item: AddedPage, error: AppError) -> dict[str, str]:
    return {"url": item.url, "code": error.code, "message": error_message(services.catalog, error)}
