"""Background work with a lease: claimed by one worker, kept by heartbeats, finished only under the newest fence.

Owns the jobs table. A job that ended well is deleted (its document's row says the rest), except scans, whose last one
stays with its result (`app.store.scan_jobs`). What a job does is `app.ingest`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, CursorResult, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.store.models.library import Document, Job

JobKind = Literal["ingest", "embed", "scan", "remove", "ocr", "fetch"]

MAX_ATTEMPTS = 3
LIVE = ("queued", "running")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job this worker holds: whatever it writes must name `fence`."""

    id: int
    kind: str
    document_id: int | None
    dedup_key: str
    payload: Mapping[str, Any]
    attempts: int
    fence: int


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to queue; nothing happens while a live one has its `dedup_key`."""

    kind: JobKind
    dedup_key: str
    document_id: int | None = None
    payload: Mapping[str, Any] | None = None


def enqueue(session: Session, jobs: Sequence[NewJob], now: datetime) -> int:
    """Queues `jobs` and returns how many were new."""
    rows: dict[str, dict[str, Any]] = {
        job.dedup_key: {
            "kind": job.kind,
            "document_id": job.document_id,
            "dedup_key": job.dedup_key,
            "payload": dict(job.payload or {}),
            "state": "queued",
            "attempts": 0,
            "fence": 0,
            "created_at": now,
        }
        for job in not_queued(session, jobs)
    }
    if rows:
        session.execute(insert(Job), list(rows.values()))
    return len(rows)


def not_queued(session: Session, jobs: Sequence[NewJob]) -> list[NewJob]:
    """Those of `jobs` that neither wait nor run."""
    live: set[str] = set()
    for some in _slices(sorted({job.dedup_key for job in jobs})):
        live |= set(session.scalars(select(Job.dedup_key).where(Job.dedup_key.in_(some), Job.state.in_(LIVE))))
    return [job for job in jobs if job.dedup_key not in live]


def claim(session: Session, kind: JobKind, limit: int, lease_s: float, now: datetime) -> list[ClaimedJob]:
    """Takes up to `limit` due jobs, oldest first; a job whose lease ran out is due too.

    A job that was begun before is taken alone, so that a file which kills the process is charged for it and its
    neighbours are not. Jobs out of attempts are not taken: see `expired`.
    """
    due = select(Job).where(Job.kind == kind, Job.attempts < MAX_ATTEMPTS).order_by(Job.id).limit(limit)
    found = list(session.scalars(due.where(_is_lost(now)))) or list(session.scalars(due.where(_is_waiting(now))))
    found = found[:1] if found and found[0].attempts else [job for job in found if not job.attempts]
    for job in found:
        job.state = "running"
        job.attempts += 1
        job.fence += 1
        job.lease_until = now + timedelta(seconds=lease_s)
        job.heartbeat_at = now
    session.flush()
    return [
        ClaimedJob(job.id, job.kind, job.document_id, job.dedup_key, dict(job.payload), job.attempts, job.fence)
        for job in found
    ]


def next_due(session: Session, kind: JobKind, now: datetime) -> float | None:
    """Seconds until a job of `kind` becomes due (0 when one is), None when there is none."""
    when = func.coalesce(Job.lease_until, Job.not_before)
    if session.scalar(select(exists().where(Job.kind == kind, _is_due(now)))):
        return 0.0
    soonest = session.scalar(select(func.min(when)).where(Job.kind == kind, Job.state.in_(LIVE)))
    return None if soonest is None else max(0.0, (soonest - now).total_seconds())


def expired(session: Session, kind: JobKind, now: datetime) -> list[ClaimedJob]:
    """Jobs whose last allowed attempt never came back; each gets a new fence, so that it can be failed."""
    dead = list(session.scalars(select(Job).where(Job.kind == kind, Job.attempts >= MAX_ATTEMPTS, _is_due(now))))
    for job in dead:
        job.fence += 1
    session.flush()
    return [
        ClaimedJob(job.id, job.kind, job.document_id, job.dedup_key, dict(job.payload), job.attempts, job.fence)
        for job in dead
    ]


def held(session: Session, jobs: Sequence[ClaimedJob]) -> set[int]:
    """The ids of those of `jobs` that are still this worker's: same fence, row still there."""
    if not jobs:
        return set()
    fences = {job.id: job.fence for job in jobs}
    rows = session.execute(select(Job.id, Job.fence).where(Job.id.in_(fences)))
    return {row.id for row in rows if fences[row.id] == row.fence}


def heartbeat(session: Session, jobs: Sequence[ClaimedJob], lease_s: float, now: datetime) -> None:
    """Extends the leases of `jobs`; those lost meanwhile are left alone."""
    for job in jobs:
        session.execute(
            update(Job).where(is_held(job)).values(lease_until=now + timedelta(seconds=lease_s), heartbeat_at=now)
        )


def finish(session: Session, jobs: Sequence[ClaimedJob]) -> None:
    """Deletes jobs that ended well. Call in the transaction that stores their result, after `held`."""
    if jobs:
        session.execute(delete(Job).where(Job.id.in_([job.id for job in jobs]), Job.state == "running"))


def postpone(session: Session, job: ClaimedJob, delay_s: float, error: str | None, now: datetime) -> None:
    """Back into the queue for a later try, its attempt counted."""
    session.execute(
        update(Job)
        .where(is_held(job))
        .values(state="queued", lease_until=None, not_before=now + timedelta(seconds=delay_s), error=error)
    )


def release(session: Session, jobs: Sequence[ClaimedJob], *, delay_s: float = 0, now: datetime) -> None:
    """Back into the queue as if never claimed: a clean stop, or a fault that is not the job's."""
    for job in jobs:
        session.execute(
            update(Job)
            .where(is_held(job))
            .values(
                state="queued",
                attempts=Job.attempts - 1,
                lease_until=None,
                not_before=now + timedelta(seconds=delay_s) if delay_s else None,
            )
        )


def fail(session: Session, job: ClaimedJob, error: str, now: datetime) -> None:
    """Ends a job for good; the document's row carries the reason."""
    session.execute(
        update(Job).where(is_held(job)).values(state="failed", error=error, lease_until=None, finished_at=now)
    )


def release_all(session: Session) -> int:
    """Makes every running job due at once. Only at start, when no other worker lives: their owners are dead."""
    released = session.execute(
        update(Job).where(Job.state == "running").values(state="queued", lease_until=None, not_before=None)
    )
    return _count(released)


def drop_of_documents(session: Session, document_ids: Sequence[int]) -> None:
    """Deletes the jobs of these documents, running ones included: their workers find the fence gone."""
    for some in _slices(document_ids):
        session.execute(delete(Job).where(Job.document_id.in_(some)))


def make_due(session: Session, document_id: int) -> None:
    """Lets a document's postponed jobs be tried now."""
    session.execute(update(Job).where(Job.document_id == document_id, Job.state == "queued").values(not_before=None))


def drop_failed(session: Session, document_id: int) -> None:
    """Forgets a document's failed jobs: it goes through ingest anew."""
    session.execute(delete(Job).where(Job.document_id == document_id, Job.state == "failed"))


def drop_key(session: Session, dedup_key: str) -> None:
    """Deletes all jobs under one key: a removed collection's scans."""
    session.execute(delete(Job).where(Job.dedup_key == dedup_key))


def ingest_job(document_id: int, sha256: str) -> NewJob:
    """The job that reads a document. One per content: a file that changes meanwhile gets another. A folder's file over
    the limit was not hashed (empty): reading it says why."""
    return NewJob("ingest", f"ingest:{document_id}:{sha256}", document_id)


def waiting_job(document_id: int, sha256: str, source: str) -> NewJob:
    """What a document that is queued waits for: a page of which no bytes came yet is fetched first."""
    return fetch_job(document_id) if source == "url" and not sha256 else ingest_job(document_id, sha256)


def fetch_job(document_id: int) -> NewJob:
    """The job that asks a server for a document's page."""
    return NewJob("fetch", f"fetch:{document_id}", document_id)


def embed_job(document_id: int) -> NewJob:
    """The job that makes a document's missing vectors."""
    return NewJob("embed", f"embed:{document_id}", document_id)


def pending(session: Session) -> int:
    """How many jobs are queued or running, of living documents and folders."""
    living = or_(Job.document_id.is_(None), exists().where(Document.id == Job.document_id))
    return session.scalar(select(func.count()).select_from(Job).where(Job.state.in_(LIVE), living)) or 0


def _is_waiting(now: datetime) -> ColumnElement[bool]:
    return and_(Job.state == "queued", or_(Job.not_before.is_(None), Job.not_before <= now))


def _is_lost(now: datetime) -> ColumnElement[bool]:
    return and_(Job.state == "running", Job.lease_until < now)


def _is_due(now: datetime) -> ColumnElement[bool]:
    return or_(_is_waiting(now), _is_lost(now))


def is_held(job: ClaimedJob) -> ColumnElement[bool]:
    """Whether the row is that job, and still this worker's."""
    return and_(Job.id == job.id, Job.fence == job.fence, Job.state.in_(LIVE))


def _count(result: Any) -> int:
    return result.rowcount if isinstance(result, CursorResult) else 0


def _slices(values: Sequence[T], size: int = 500) -> list[Sequence[T]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
