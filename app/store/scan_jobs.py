"""Scans among the jobs: what one is to look at, and how the newest of a collection ended.

Owns the payload of a `scan` job. Claiming, leases and the table are `app.store.jobs`'; what a scan does is
`app.ingest.scan`'s. Called by ingest for its work, and by pages and API for how it stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.orm import Session

from app.store.jobs import LIVE, ClaimedJob, NewJob, is_held
from app.store.models.library import Job


@dataclass(frozen=True, slots=True)
class ScanState:
    """The newest scan of a collection: its state (queued, running, done, failed), and what the newest one that ended
    came to: result, error code."""

    state: str
    result: Mapping[str, Any]
    error: str | None
    finished_at: datetime | None


def scan_job(collection_id: int, *, may_be_empty: bool = False, folders: Sequence[str] = ()) -> NewJob:
    """The job that compares a folder with the database; `may_be_empty`: a person said that nothing is in it;
    `folders`: only what lies in these directories changed."""
    payload = {"collection_id": collection_id, "may_be_empty": may_be_empty, "folders": list(folders)}
    return NewJob("scan", scan_key(collection_id), None, payload)


def scan_key(collection_id: int) -> str:
    """The dedup key of a collection's scan."""
    return f"scan:{collection_id}"


def scan_state(session: Session, collection_id: int) -> ScanState | None:
    """The collection's newest scan, None before the first. While one is asked for or going on, result and error are
    those of the one before."""
    query = select(Job).where(Job.dedup_key == scan_key(collection_id)).order_by(Job.id.desc())
    found = list(session.scalars(query.limit(2)))
    if not found:
        return None
    ended = next((job for job in found if job.state not in LIVE), found[0])
    return ScanState(found[0].state, dict(ended.payload.get("result", {})), ended.error, ended.finished_at)


def finish_scan(session: Session, job: ClaimedJob, result: Mapping[str, Any], error: str | None, now: datetime) -> bool:
    """Keeps a scan's result as the collection's newest one and drops older ones. False when the lease was lost."""
    done = session.execute(
        update(Job)
        .where(is_held(job))
        .values(
            state="failed" if error else "done",
            payload={**job.payload, "result": dict(result)},
            error=error,
            lease_until=None,
            finished_at=now,
        )
    )
    if not (isinstance(done, CursorResult) and done.rowcount):
        return False
    session.execute(delete(Job).where(Job.dedup_key == job.dedup_key, Job.id < job.id, Job.state.not_in(LIVE)))
    return True
