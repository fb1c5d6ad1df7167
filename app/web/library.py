"""The library page: files with their state, search in names and text, retry. Removing is `app.web.removing`'s.

Owns `/library` and its fragments under `/ui/library` and `/ui/documents`. What rows say is `app.web.library_view`'s,
watched folders are `app.web.folders`', what is being added `app.web.progress_box`'s, reading files is
`app.ingest.sources`'.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.edge.inputs import RowId
from app.edge.uploads import receive_uploads
from app.rag.context import passages_of
from app.rag.merging import merged
from app.render.names import shown_name
from app.search.hits import SearchFilters
from app.store import collections, documents, web_pages
from app.store.documents import Counts, DocumentFilters, DocumentPage
from app.store.engine import Session
from app.web import folders, library_view, search_view
from app.web.language_hint import library_hint
from app.web.library_rows import file_row, file_rows
from app.web.progress_box import adding_of
from app.web.search_view import Found
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()

TEXT_HITS = 8
QUERY_CHARS = 400


def list_filters(
    q: Annotated[str, Query(max_length=QUERY_CHARS)] = "", collection: str = "", status: str = ""
) -> DocumentFilters:
    """The filters of an address; a value that is no choice counts as none, as an old link may hold one."""
    return DocumentFilters(
        q=" ".join(q.split()) or None,
        collection=int(collection) if collection.isdecimal() and len(collection) < 18 else None,
        status=status if status in library_view.statuses() else None,  # pyright: ignore[reportArgumentType] - checked
    )


FiltersDep = Annotated[DocumentFilters, Depends(list_filters)]


@dataclass(frozen=True, slots=True)
class _Listed:
    page: DocumentPage
    matching: int
    counts: Counts
    collections: list[collections.CollectionRow]


@router.get("/library", response_class=HTMLResponse)
def library_page(
    request: Request, services: ServicesDep, user_id: UserDep, filters: FiltersDep, after: str | None = None
) -> HTMLResponse:
    """The whole page."""
    context = files_context(services, user_id, filters, after)
    context |= {
        "adding": adding_of(services, user_id, None),
        "since": services.progress.began().isoformat(),
        "focus": request.query_params.get("focus") == "search",
        "language_hint": library_hint(services, user_id),
        **folders.context(services, user_id),
        "web_pages": services.database.read(lambda session: web_pages.count_pages(session, user_id)),
    }
    return render_page(services, request, user_id, "library/page.html", place="library", **context)


@router.get("/ui/library/files", response_class=HTMLResponse)
def files_fragment(services: ServicesDep, user_id: UserDep, filters: FiltersDep) -> HTMLResponse:
    """The list anew: filters changed, or files came."""
    return render_fragment(services, "library/_list.html", **files_context(services, user_id, filters, None))


@router.post("/ui/library/files")
async def upload_form(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes files from a plain form, for browsers without script; what was refused is listed with its reason."""
    uploaded = await receive_uploads(request, services, user_id)
    problems = [
        {"name": shown_name(item.name), "words": error_message(services.catalog, item.error)}
        for item in uploaded
        if item.error is not None
    ]
    if not problems:
        return RedirectResponse("/library", status_code=303)
    status = next(item.error.status for item in uploaded if item.error is not None)
    page = partial(render_page, services, request, user_id, "library/upload_failed.html", place="library")
    return await anyio.to_thread.run_sync(partial(page, status=status, problems=problems))


@router.get("/ui/library/more", response_class=HTMLResponse)
def more_fragment(
    services: ServicesDep, user_id: UserDep, filters: FiltersDep, after: str, shown: int = 0
) -> HTMLResponse:
    """The next rows, with a new foot."""
    context = files_context(services, user_id, filters, after, shown=shown)
    return render_fragment(services, "library/_rows.html", **context)


@router.get("/ui/library/working", response_class=HTMLResponse)
def working_fragment(
    services: ServicesDep, user_id: UserDep, row: Annotated[list[str] | None, Query(max_length=500)] = None
) -> Response:
    """Those of the rows in work that changed. 286 tells htmx to stop asking when none is in work any more."""
    named = (item.partition(".") for item in row or ())
    known = {int(number): state for number, _, state in named if number.isdecimal() and len(number) < 18}
    if not known:
        return Response(status_code=286)
    found = services.database.read(lambda session: documents.get_rows(session, user_id, list(known)))
    rows = file_rows(services, found)
    changed = [item for item in rows if item.fingerprint != f"{item.id}.{known[item.id]}"]
    counts = services.database.read(lambda session: documents.counts(session, user_id))
    return render_fragment(
        services,
        "library/_working.html",
        rows=changed,
        oob=True,
        **counts_context(services, counts),
    )


@router.post("/ui/documents/{document_id}/retry")
def retry(
    request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep, back: str = "library"
) -> Response:
    """Reads a failed document again.

    Raises:
        NotFoundError: when it is not there any more.
    """
    services.sources.retry(user_id, document_id)
    return _again(request, document_id, services, user_id, back)


@router.post("/ui/documents/{document_id}/ocr")
def recognise(
    request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep, back: str = "library"
) -> Response:
    """Has the pictures of a document's pages read.

    Raises:
        NotFoundError: when it is not there any more.
    """
    services.sources.recognise(user_id, document_id)
    return _again(request, document_id, services, user_id, back)


def _again(request: Request, document_id: int, services: Services, user_id: int, back: str) -> Response:
    """The row of a document that is being worked on again."""
    if not is_htmx(request):
        return RedirectResponse(f"/documents/{document_id}" if back == "reader" else "/library", status_code=303)
    row = services.database.read(lambda session: documents.get_document(session, user_id, document_id)).row
    response = render_fragment(services, "library/_row.html", row=file_row(services, row), oob=False)
    response.headers["HX-Trigger"] = "library-work"
    return response


def files_context(
    services: Services, user_id: int, filters: DocumentFilters, after: str | None, *, shown: int = 0
) -> dict[str, Any]:
    """What the list's templates need."""
    listed = services.database.read(lambda session: _list(session, user_id, filters, after))
    rows = file_rows(services, listed.page.rows)
    shown = shown + len(rows)
    catalog = services.catalog
    more = None
    if listed.page.next is not None:
        more = {
            "page": library_view.page_address("/library", filters, listed.page.next, shown),
            "fragment": library_view.page_address("/ui/library/more", filters, listed.page.next, shown),
        }
    return {
        "filters": filters,
        "filtered": filters != DocumentFilters(),
        "statuses": library_view.statuses(),
        "collections": listed.collections,
        "sample": next((row for row in listed.collections if row.kind == "sample"), None),
        **counts_context(services, listed.counts),
        "rows": rows,
        "range": catalog.t("library.range", shown=shown, total=listed.matching),
        "more": more,
        "hits": _text_hits(services, user_id, filters) if after is None else None,
        "empty_formats": catalog.t("library.empty_formats", size=catalog.size(services.settings.upload_max_mb * 10**6)),
        "oob": False,
    }


def counts_context(services: Services, counts: Counts) -> dict[str, Any]:
    """The line under the title, and the numbers that the side bar repeats."""
    words = library_view.counts_words(counts, services.catalog)
    return {"counts": words, "held": counts.documents, "reads": counts.read}


def _list(session: Session, user_id: int, filters: DocumentFilters, after: str | None) -> _Listed:
    counts = documents.counts(session, user_id)
    is_all = filters == DocumentFilters()
    return _Listed(
        page=documents.list_documents(session, user_id, filters, after=after),
        matching=counts.documents if is_all else documents.count_matching(session, user_id, filters),
        counts=counts,
        collections=collections.list_collections(session, user_id),
    )


def _text_hits(services: Services, user_id: int, filters: DocumentFilters) -> tuple[Found, ...] | None:
    """Passages that hold what is looked for or come close to it; None where nothing is looked for."""
    if not filters.q:
        return None
    where = SearchFilters(collections=None if filters.collection is None else (filters.collection,))
    hits = services.searcher.search(filters.q, user_id=user_id, k=TEXT_HITS, filters=where)
    least = services.settings.retrieval_min_score
    found = search_view.hits(merged(passages_of(hits)), search_view.Query(filters.q), services.catalog)
    return tuple(hit for hit in found if hit.holds_words or hit.fit >= least)
