"""`/api/collections`: what is in the library besides uploads: watched folders and the sample; add, scan, remove.

Owns the JSON shape of a collection. What a folder is belongs to `app.ingest.watched`.
"""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import RowId
from app.store import collections, scan_jobs
from app.store.collections import CollectionRow
from app.store.engine import Session
from app.store.scan_jobs import ScanState

router = APIRouter()


class FolderBody(BaseModel):
    """The absolute path of a folder on the machine Docent runs on."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=4096)]


@router.get("/api/collections")
def list_collections(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{collections: [row…]}`; `scan` is the newest scan's `{state, result, error}`, null where there is none."""

    def work(session: Session) -> list[tuple[CollectionRow, ScanState | None]]:
        return [(row, _scan(session, row)) for row in collections.list_collections(session, user_id)]

    found = services.database.read(work)
    return {"collections": [_shown(services, row, scan) for row, scan in found]}


@router.post("/api/collections", status_code=202)
def add_folder(body: FolderBody, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Watches a folder; its first scan is queued."""
    return _get(services, user_id, services.folders.add_folder(user_id, body.path))


@router.post("/api/collections/sample", status_code=202)
def add_sample(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Adds Docent's own manual, once."""
    return _get(services, user_id, services.folders.add_sample(user_id))


@router.get("/api/collections/{collection_id}")
def get_collection(collection_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """One row of the list."""
    return _get(services, user_id, collection_id)


@router.post("/api/collections/{collection_id}/scan", status_code=202)
def scan(collection_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Compares a folder with the library now."""
    services.folders.request_scan(user_id, collection_id)
    return _get(services, user_id, collection_id)


@router.delete("/api/collections/{collection_id}", status_code=204)
def remove(collection_id: RowId, services: ServicesDep, user_id: UserDep) -> None:
    """Takes a folder or the sample out of the library; nothing on disk is touched."""
    services.folders.remove(user_id, collection_id)


def _get(services: Services, user_id: int, collection_id: int) -> dict[str, Any]:
    def work(session: Session) -> tuple[CollectionRow, ScanState | None]:
        row = collections.get_collection(session, user_id, collection_id)
        return row, _scan(session, row)

    return _shown(services, *services.database.read(work))


def _scan(session: Session, row: CollectionRow) -> ScanState | None:
    return scan_jobs.scan_state(session, row.id) if row.root is not None else None


def _shown(services: Services, row: CollectionRow, scan: ScanState | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "slug": row.slug,
        "kind": row.kind,
        "root": row.root if row.kind == "folder" else None,
        "documents": row.documents,
        "locked": services.folders.is_locked(row),
        "scanned_at": None if row.scanned_at is None else row.scanned_at.isoformat(),
        "created_at": row.created_at.isoformat(),
        "scan": None if scan is None else _scan_shown(services, row, scan),
    }


def _scan_shown(services: Services, row: CollectionRow, scan: ScanState) -> dict[str, Any]:
    error = None
    if scan.error is not None:
        key = f"errors.{scan.error}"
        known = services.catalog.has(key)
        message = services.catalog.t(key if known else "errors.internal", path=row.root or "")
        error = {"code": scan.error, "message": message}
    return {"state": scan.state, "result": dict(scan.result), "error": error}
