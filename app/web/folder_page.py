"""A watched folder's own page: which of its files are wanted, with a count before it is so.

Owns `/library/folders/{id}` and the form's answers. What a pattern means is `app.ingest.patterns`', what it would do
`app.ingest.watched`'s.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.edge.inputs import RowId
from app.errors import AppError, InvalidInputError
from app.ingest.patterns import Patterns, parse_patterns
from app.ingest.watched import PatternsPreview
from app.store import collections, scan_jobs
from app.store.collections import CollectionRow
from app.store.engine import Session
from app.store.scan_jobs import ScanState
from app.web.folders import shown_folder
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()

PATTERNS_CHARS = 32_000


class PatternFields(BaseModel):
    """What the form sends."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["count", "save"]
    include: Annotated[str, Field(max_length=PATTERNS_CHARS)] = ""
    exclude: Annotated[str, Field(max_length=PATTERNS_CHARS)] = ""


@router.get("/library/folders/{collection_id}", response_class=HTMLResponse)
def folder_page(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The page.

    Raises:
        NotFoundError: when it is not watched any more.
        InvalidInputError: `collection_without_folder`, for uploads and the sample.
    """
    context = _context(services, user_id, collection_id)
    return render_page(services, request, user_id, "library/folder.html", place="library", **context)


@router.post("/ui/library/folders/{collection_id}/patterns")
def patterns_form(
    request: Request,
    collection_id: RowId,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[PatternFields, Form()],
) -> Response:
    """Counts what the patterns would do, or saves them and has the folder compared.

    Raises:
        NotFoundError: when it is not watched any more.
    """
    action = fields.action
    typed: dict[str, Any] = {"include": fields.include, "exclude": fields.exclude}
    status = 200
    try:
        patterns = Patterns(parse_patterns(fields.include), parse_patterns(fields.exclude))
        if action == "count":
            preview = services.folders.preview(user_id, collection_id, patterns)
            typed["outcome"] = _preview_words(services, preview)
        else:
            services.folders.set_patterns(user_id, collection_id, patterns)
            typed["outcome"] = [services.catalog.t("library.patterns_saved")]
    except AppError as error:
        status = error.status
        typed["problem"] = error_message(services.catalog, error)
    htmx = is_htmx(request)
    if action == "save" and status == 200 and not htmx:
        return RedirectResponse(f"/library/folders/{collection_id}", status_code=303)
    context = {**_context(services, user_id, collection_id), **typed}
    if htmx:
        return render_fragment(services, "library/_patterns.html", status=status, **context)
    return render_page(services, request, user_id, "library/folder.html", status=status, place="library", **context)


def _context(services: Services, user_id: int, collection_id: int) -> dict[str, Any]:
    def work(session: Session) -> tuple[CollectionRow, ScanState | None]:
        row = collections.get_collection(session, user_id, collection_id)
        return row, scan_jobs.scan_state(session, collection_id)

    row, scan = services.database.read(work)
    if row.kind != "folder":
        raise InvalidInputError("collection_without_folder")
    return {
        "folder": shown_folder(services, row, scan),
        "include": "\n".join(row.include),
        "exclude": "\n".join(row.exclude),
        "outcome": [],
        "problem": "",
    }


def _preview_words(services: Services, preview: PatternsPreview) -> list[str]:
    catalog = services.catalog
    words = [catalog.t("library.preview_files", n=preview.files)]
    if preview.going:
        words.append(catalog.t("library.preview_going", n=preview.going))
    if preview.coming:
        words.append(catalog.t("library.preview_coming", n=preview.coming))
    if not preview.going and not preview.coming:
        words.append(catalog.t("library.preview_same"))
    return words
