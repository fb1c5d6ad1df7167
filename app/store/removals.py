"""Collections on their way out: the job that takes their documents, and how far it is.

Owns that job's shape; jobs themselves are `app.store.jobs`'. `app.ingest.watched` begins a removal,
`app.ingest.folder_work` does it, pages show it.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.store import collections, jobs, scan_jobs
from app.store.models.library import Document, Job


@dataclass(frozen=True, slots=True)
class Removal:
    """A collection that is being removed: how many documents there were, and how many are left."""

    id: int
    name: str
    documents: int
    left: int


def begin(session: Session, row: collections.CollectionRow, now: datetime) -> None:
    """Hides a collection and queues taking its documents out; what was still to be done to them is forgotten."""
    jobs.drop_key(session, scan_jobs.scan_key(row.id))
    theirs = select(Document.id).where(Document.collection_id == row.id)
    session.execute(delete(Job).where(Job.document_id.in_(theirs)))
    collections.mark_removing(session, row.id, now)
    jobs.enqueue(session, [_job(row)], now)


def resume(session: Session, now: datetime) -> int:
    """Queues what a removal that was given up still has to do; returns how many there were. At start, when no other
    worker lives."""
    return jobs.enqueue(session, [_job(row) for row in collections.list_removing(session)], now)


def list_removals(session: Session, user_id: int) -> list[Removal]:
    """The user's removals that are going on."""
    return [_removal(session, row) for row in collections.list_removing(session, user_id)]


def _removal(session: Session, row: collections.CollectionRow) -> Removal:
    query = select(Job.payload).where(Job.dedup_key == _key(row.id)).order_by(Job.id.desc()).limit(1)
    payload = session.scalar(query) or {}
    return Removal(row.id, row.name, max(int(payload.get("documents", 0)), row.documents), row.documents)


def _job(row: collections.CollectionRow) -> jobs.NewJob:
    payload = {"collection_id": row.id, "documents": row.documents}
    return jobs.NewJob("remove", _key(row.id), None, payload)


def _key(collection_id: int) -> str:
    return f"remove:{collection_id}"
