"""Adding web pages on the library's page, having them fetched again, choosing how often.

Owns the forms and dialogs under `/library/pages` and `/ui/library/pages`. What happens to a page is
`app.ingest.fetch_pages`', what its row says `app.web.web_page_view`'s. Nothing here waits for another server.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.edge.inputs import InputText, RowId
from app.errors import AppError, NotFoundError
from app.ingest.fetch_address import MAX_CHARS
from app.ingest.fetch_pages import MAX_ADDRESSES, AddedPage
from app.render.names import shown_name
from app.store import documents, web_pages
from app.store.documents import DocumentRow
from app.store.engine import Session
from app.store.web_pages import PageRow, Refresh
from app.web.library_rows import file_row
from app.web.templating import is_htmx, render_fragment, render_page
from app.web.web_page_view import CHOICES

router = APIRouter()


class NewPages(BaseModel):
    """What the form sends: an address a line."""

    model_config = ConfigDict(extra="forbid")

    addresses: Annotated[InputText, Field(max_length=MAX_ADDRESSES * MAX_CHARS)] = ""


class RefreshChoice(BaseModel):
    """What the dialog sends."""

    model_config = ConfigDict(extra="forbid")

    every: Refresh


@router.get("/library/pages/add", response_class=HTMLResponse)
def add_page(request: Request, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The form as a page, for browsers without script."""
    return render_page(services, request, user_id, "library/url_add.html", place="library", **_form())


@router.get("/ui/library/pages/add", response_class=HTMLResponse)
def add_dialog(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The form as a dialog."""
    return render_fragment(services, "library/_url_dialog.html", **_form())


@router.get("/ui/library/pages", response_class=HTMLResponse)
def section(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """How many documents come from the web."""
    held = services.database.read(lambda session: web_pages.count_pages(session, user_id))
    return render_fragment(services, "library/_url_section.html", web_pages=held)


@router.post("/ui/library/pages")
def add(request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[NewPages, Form()]) -> Response:
    """Queues what can be fetched; what is refused stays in the form, each with its reason."""
    refused: list[AddedPage] = []
    problem, added = "", 0
    try:
        result = services.pages.add(user_id, _addresses(fields.addresses))
    except AppError as error:
        problem, typed = error_message(services.catalog, error), fields.addresses
    else:
        refused = [item for item in result if item.error is not None]
        added, typed = len(result) - len(refused), "\n".join(item.url for item in refused)
    if not problem and not refused:
        if not is_htmx(request):
            return RedirectResponse("/library", status_code=303)
        words = services.catalog.t("webpages.added", n=added)
        return _working(render_fragment(services, "library/_url_done.html", words=words))
    context = _form(typed, problem, _reasons(services, refused))
    context["added"] = services.catalog.t("webpages.added", n=added) if added else ""
    if not is_htmx(request):
        page = "library/url_add.html"
        return render_page(services, request, user_id, page, status=422, place="library", **context)
    response = render_fragment(services, "library/_url_form.html", status=422, **context)
    return _working(response) if added else response


@router.post("/ui/library/pages/refresh")
def refresh_all(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Has every page fetched again."""
    queued = services.pages.refresh_all(user_id)
    if not is_htmx(request):
        return RedirectResponse("/library", status_code=303)
    words = services.catalog.t("webpages.refreshing", n=queued)
    return _working(render_fragment(services, "library/_url_done.html", words=words))


@router.post("/ui/documents/{document_id}/refresh")
def refresh(
    request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep, back: str = "library"
) -> Response:
    """Has one page fetched again; its row as it is meanwhile.

    Raises:
        NotFoundError: when it is not there any more.
    """
    services.pages.refresh(user_id, document_id)
    if not is_htmx(request):
        return RedirectResponse(f"/documents/{document_id}" if back == "reader" else "/library", status_code=303)
    response = render_fragment(services, "library/_row.html", row=_row(services, user_id, document_id), oob=False)
    response.headers["HX-Trigger"] = "library-work"
    return response


@router.get("/library/pages/{document_id}/refresh", response_class=HTMLResponse)
def choice_page(request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """How often a page is fetched again, as a page."""
    context = _choice(services, user_id, document_id)
    return render_page(services, request, user_id, "library/url_choice.html", place="library", **context)


@router.get("/ui/documents/{document_id}/refresh", response_class=HTMLResponse)
def choice_dialog(document_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The same as a dialog."""
    return render_fragment(services, "library/_url_choice.html", **_choice(services, user_id, document_id))


@router.post("/ui/documents/{document_id}/refresh-every")
def choose(
    request: Request,
    document_id: RowId,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[RefreshChoice, Form()],
) -> Response:
    """Saves how often a page is fetched again.

    Raises:
        NotFoundError: when it is not there any more.
    """
    services.pages.set_refresh(user_id, document_id, fields.every)
    if not is_htmx(request):
        return RedirectResponse("/library", status_code=303)
    words = services.catalog.t(f"webpages.saved_{fields.every}")
    row = _row(services, user_id, document_id)
    return render_fragment(services, "library/_url_done.html", words=words, row=row, oob=True)


def _form(typed: str = "", problem: str = "", refused: dict[str, list[str]] | None = None) -> dict[str, Any]:
    return {"typed": typed, "problem": problem, "refused": refused or {}, "added": ""}


def _addresses(text: str) -> list[str]:
    """An address a line; several in one line where each looks like one."""
    found: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = line.split()
        found += parts if all("://" in part for part in parts) else [line]
    return found


def _reasons(services: Services, refused: list[AddedPage]) -> dict[str, list[str]]:
    """The addresses that were refused, by sentence, so that each is said once."""
    found: dict[str, list[str]] = {}
    for item in refused:
        if item.error is not None:
            found.setdefault(error_message(services.catalog, item.error), []).append(shown_name(item.url))
    return found


def _choice(services: Services, user_id: int, document_id: int) -> dict[str, Any]:
    def work(session: Session) -> tuple[DocumentRow, PageRow | None]:
        row = documents.get_document(session, user_id, document_id).row
        return row, web_pages.rows_of(session, [document_id]).get(document_id)

    row, page = services.database.read(work)
    if page is None:
        raise NotFoundError("document_without_address")
    return {"id": document_id, "name": shown_name(row.path), "every": page.refresh, "choices": CHOICES}


def _row(services: Services, user_id: int, document_id: int) -> Any:
    found = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    return file_row(services, found.row)


def _working(response: HTMLResponse) -> HTMLResponse:
    """Has the page bring its list and its progress box anew."""
    response.headers["HX-Trigger"] = "library-changed, library-work"
    return response
