"""Which documents a newer Docent reads again by itself, and how far it has come.

Owns the row `extractors` of the settings table: the version that is walked through the library, when it was first met,
and the last document taken; none is taken twice by one version. What a version is stands in `app.ingest.rereading`,
which calls this. The worker's: no owner is asked.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.store import intake, jobs
from app.store.document_types import type_of
from app.store.models.library import Collection, Document
from app.store.models.setup import Setting

KEY = "extractors"
REFUSED = "unsupported"
"""The reason of a document in a format that nothing reads."""


def queue_some(session: Session, version: int, limit: int, now: datetime) -> int | None:
    """Queues at most `limit` further documents that an earlier version refused, or took for plain text although their
    name promises a table or settings; those of web pages whatever their name; and reStructuredText. None once the
    version is through.

    What they hold stays findable until the new text replaces it, also where there comes none (`is_reread`).
    """
    known = _known(session)
    if known.get("version", 0) > version:
        return None
    if known.get("version") != version:
        known.update(version=version, since=now.isoformat(), after=0)
    after = known["after"]
    found = [] if after is None else _candidates(session, after, datetime.fromisoformat(known["since"]), limit)
    for number, sha256 in found:
        intake.requeue(session, number, now)
        jobs.drop_failed(session, number)
        jobs.enqueue(session, [replace(jobs.ingest_job(number, sha256), payload={"reread": True})], now)
    reached = found[-1][0] if found else None
    if reached != after or after == 0:
        session.merge(Setting(key=KEY, value={**known, "after": reached}, updated_at=now, updated_by=None))
    return len(found) or None


def is_reread(job: jobs.ClaimedJob) -> bool:
    """Whether it reads a document that nobody changed and nobody asked for: should that fail, it keeps what it has."""
    return bool(job.payload.get("reread"))


def _known(session: Session) -> dict[str, Any]:
    row = session.get(Setting, KEY)
    return {} if row is None else dict(row.value)


def _candidates(session: Session, after: int, since: datetime, limit: int) -> list[tuple[int, str]]:
    """(id, sha256) of living documents, oldest first. Whatever was read since is this version's work already."""
    was_refused = (Document.status == "failed") & (Document.error == REFUSED)
    is_plain = (Document.mime == "text/plain") & ((Document.source == "url") | (type_of() == "csv"))
    was_read = Document.status.in_(("embedding", "ready")) & or_(
        is_plain, type_of() == "config", Document.mime == "text/x-rst"
    )
    query = (
        select(Document.id, Document.sha256)
        .join(Collection, Collection.id == Document.collection_id)
        .where(
            Document.id > after,
            Document.updated_at < since,
            Document.deleted_at.is_(None),
            Collection.removing_at.is_(None),
            or_(was_refused, was_read),
        )
        .order_by(Document.id)
        .limit(limit)
    )
    return [(row.id, row.sha256) for row in session.execute(query)]
