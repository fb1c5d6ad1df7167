"""Removing a document: the question before it, as a dialog and as a page, and the deed.

Owns the removal's addresses under `/library/remove` and `/ui/documents`. What is lost is said by the catalog, what is
removed is `app.ingest.sources`' to do.
"""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import RowId
from app.render.names import shown_name
from app.store import documents
from app.web.library import counts_context
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()


@router.get("/library/remove/{document_id}", response_class=HTMLResponse)
def remove_page(request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The question before a document is removed, as a page for browsers without script."""
    confirm = _remove_question(services, user_id, document_id)
    return render_page(services, request, user_id, "library/confirm.html", place="library", confirm=confirm)


@router.get("/ui/documents/{document_id}/remove", response_class=HTMLResponse)
def remove_dialog(document_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The same question as a dialog."""
    return render_fragment(services, "library/_confirm.html", confirm=_remove_question(services, user_id, document_id))


@router.post("/ui/documents/{document_id}/remove")
def remove(request: Request, document_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Removes a document with its passages.

    Raises:
        NotFoundError: when it is not there any more.
    """
    row = services.database.read(lambda session: documents.get_document(session, user_id, document_id)).row
    services.sources.delete_document(user_id, document_id)
    if not is_htmx(request):
        return RedirectResponse("/library", status_code=303)
    counts = services.database.read(lambda session: documents.counts(session, user_id))
    words = services.catalog.t("library.removed", name=shown_name(row.path))
    return render_fragment(
        services,
        "library/_removed.html",
        id=document_id,
        words=words,
        oob=True,
        **counts_context(services, counts),
    )


def _remove_question(services: Services, user_id: int, document_id: int) -> dict[str, str]:
    row = services.database.read(lambda session: documents.get_document(session, user_id, document_id)).row
    catalog = services.catalog
    loses = catalog.t("library.remove_loses", n=row.chunks) if row.chunks else catalog.t("library.remove_loses_nothing")
    return {
        "action": f"/ui/documents/{document_id}/remove",
        "back": "/library",
        "title": catalog.t("library.remove_title", name=shown_name(row.path)),
        "loses": loses,
        "more": catalog.t("library.remove_folder_file") if row.source == "folder" else "",
        "verb": catalog.t("library.remove_verb"),
    }
