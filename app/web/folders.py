"""Watched folders and the sample collection, as the library and the settings show them: add, scan now, remove.

Owns the fragments under `/ui/library/folders` and `/ui/library/sample`. What a folder is and what removing one means is
`app.ingest.watched`'s.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.edge.inputs import RowId
from app.errors import AppError
from app.render.names import shown_name
from app.store import collections, removals, scan_jobs
from app.store.collections import CollectionRow
from app.store.engine import Session
from app.store.removals import Removal
from app.store.scan_jobs import ScanState
from app.web import folders_view
from app.web.folders_view import Folder
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()


@router.get("/ui/library/folders", response_class=HTMLResponse)
def folders_fragment(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The list anew, asked for while a scan goes on; what the scan found is told to the rest of the page."""
    values = context(services, user_id)
    response = render_fragment(services, "library/_folders.html", **values)
    response.headers["HX-Trigger"] = "library-work" if values["folders_busy"] else "library-work, library-changed"
    return response


@router.get("/ui/library/changes", response_class=HTMLResponse)
def changes_fragment(services: ServicesDep, user_id: UserDep, seen: str = "") -> Response:
    """Asked for by an open page: nothing (204) while no folder changed since `seen`; else the page is told to bring
    what it shows anew."""
    stamp = services.database.read(lambda session: collections.stamp(session, user_id))
    if stamp == seen:
        return Response(status_code=204)
    response = render_fragment(services, "library/_changes.html", stamp=stamp)
    response.headers["HX-Trigger"] = "library-changed, library-folders, library-work"
    return response


@router.post("/ui/library/folders")
def add_folder(request: Request, services: ServicesDep, user_id: UserDep, path: Annotated[str, Form()]) -> Response:
    """Watches a folder, or says beside the field why not."""
    try:
        services.folders.add_folder(user_id, path)
    except AppError as error:
        problem = {"folder_error": error_message(services.catalog, error), "folder_path": path}
        return _answer(services, request, user_id, status=error.status, **problem)
    name = shown_name(path.rstrip("/").rsplit("/", 1)[-1] or path)
    return _answer(services, request, user_id, notice=services.catalog.t("library.folder_added", name=name))


@router.post("/ui/library/folders/{collection_id}/scan")
def scan_folder(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Compares the folder with the library now.

    Raises:
        NotFoundError: when it is not watched any more.
    """
    services.folders.request_scan(user_id, collection_id)
    return _answer(services, request, user_id)


@router.get("/ui/library/folders/{collection_id}/empty", response_class=HTMLResponse)
def empty_dialog(collection_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The question before an emptied folder's documents go."""
    question = _question(services, user_id, collection_id, "empty")
    return render_fragment(services, "library/_confirm.html", confirm=question)


@router.get("/library/folders/{collection_id}/empty", response_class=HTMLResponse)
def empty_page(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The same question as a page, for browsers without script."""
    question = _question(services, user_id, collection_id, "empty")
    return render_page(services, request, user_id, "library/confirm.html", place="library", confirm=question)


@router.post("/ui/library/folders/{collection_id}/empty")
def accept_empty(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Compares the folder with the library now, and takes it as it is, even empty.

    Raises:
        NotFoundError: when it is not watched any more.
    """
    services.folders.request_scan(user_id, collection_id, may_be_empty=True)
    return _answer(services, request, user_id, oob=True)


@router.get("/ui/library/folders/{collection_id}/remove", response_class=HTMLResponse)
def remove_dialog(collection_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The question before a folder goes."""
    question = _question(services, user_id, collection_id, "remove")
    return render_fragment(services, "library/_confirm.html", confirm=question)


@router.get("/library/folders/{collection_id}/remove", response_class=HTMLResponse)
def remove_page(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The same question as a page, for browsers without script."""
    question = _question(services, user_id, collection_id, "remove")
    return render_page(services, request, user_id, "library/confirm.html", place="library", confirm=question)


@router.post("/ui/library/folders/{collection_id}/remove")
def remove_folder(request: Request, collection_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes a folder or the sample out of the library; its files stay on disk.

    Raises:
        NotFoundError: when it is not watched any more.
        ConflictError: for a folder that the environment names.
    """
    row = services.database.read(lambda session: collections.get_collection(session, user_id, collection_id))
    services.folders.remove(user_id, collection_id)
    notice = services.catalog.t("library.folder_removed", name=shown_name(row.name))
    response = _answer(services, request, user_id, notice=notice, oob=True)
    response.headers["HX-Trigger"] = "library-changed"
    return response


@router.post("/ui/library/sample")
def add_sample(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Adds Docent's own manual, once. A plain form leads to the library, where its progress is seen."""
    services.folders.add_sample(user_id)
    if not is_htmx(request):
        return RedirectResponse("/library", status_code=303)
    return _answer(services, request, user_id)


def context(services: Services, user_id: int, *, notice: str = "", **changes: Any) -> dict[str, Any]:
    """What the folders' templates need."""
    rows, leaving = services.database.read(lambda session: _read(session, user_id))
    folders = [shown_folder(services, row, scan) for row, scan in rows if row.root is not None]
    going = [folders_view.leaving(item, services.catalog) for item in leaving]
    return {
        "folders": folders,
        "removals": going,
        "folders_busy": bool(going) or any(folder.scanning for folder in folders),
        "folders_hint": services.catalog.t("library.folders_hint", every=_every(services)),
        "stamp": services.database.read(lambda session: collections.stamp(session, user_id)),
        "folder_notice": notice,
        "folder_error": "",
        "folder_path": "",
        "sample": next((row for row, _ in rows if row.kind == "sample"), None),
        "oob": False,
        **changes,
    }


def _answer(
    services: Services, request: Request, user_id: int, *, status: int = 200, notice: str = "", **changes: Any
) -> Response:
    """The list anew for htmx; for a plain form the page again, with the problem where there is one."""
    if is_htmx(request):
        values = context(services, user_id, notice=notice, **changes)
        response = render_fragment(services, "library/_folders.html", status=status, **values)
        response.headers["HX-Trigger"] = "library-work"
        return response
    if status != 200:
        values = context(services, user_id, **changes)
        return render_page(services, request, user_id, "library/folders.html", status=status, place="library", **values)
    return RedirectResponse("/library#folders", status_code=303)


def shown_folder(services: Services, row: CollectionRow, scan: ScanState | None) -> Folder:
    """A folder as its row shows it."""
    locked = services.folders.is_locked(row)
    return folders_view.folder(row, scan, services.catalog, services.clock.now(), locked=locked)


def _read(session: Session, user_id: int) -> tuple[list[tuple[CollectionRow, ScanState | None]], list[Removal]]:
    rows = collections.list_collections(session, user_id)
    scans = [(row, scan_jobs.scan_state(session, row.id) if row.root is not None else None) for row in rows]
    return scans, removals.list_removals(session, user_id)


def _every(services: Services) -> str:
    """How often folders are looked at, as words."""
    minutes, seconds = divmod(round(services.settings.watch_rescan_s), 60)
    if minutes and not seconds:
        return services.catalog.t("library.every_minutes", n=minutes)
    return services.catalog.seconds(round(services.settings.watch_rescan_s * 1000))


def _question(services: Services, user_id: int, collection_id: int, what: Literal["remove", "empty"]) -> dict[str, str]:
    row = services.database.read(lambda session: collections.get_collection(session, user_id, collection_id))
    catalog, kind = services.catalog, "sample" if what == "remove" and row.kind == "sample" else "folder"
    return {
        "action": f"/ui/library/folders/{collection_id}/{what}",
        "back": "/library",
        "title": catalog.t(f"library.{what}_{kind}_title", name=shown_name(row.name)),
        "loses": catalog.t(f"library.{what}_{kind}_loses", n=row.documents),
        "more": "",
        "verb": catalog.t(f"library.{what}_{kind}_verb"),
    }
