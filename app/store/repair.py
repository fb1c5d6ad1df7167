"""Putting right what belongs to nothing: rows are dropped, waiting documents get their jobs, vectors are asked for.

Owns these statements; what is looked for is `app.store.integrity`'s, when and with which files `app.ingest.upkeep`'s.
Everything here can be made again from what is kept: documents' rows and texts are never touched.
"""

from datetime import datetime

from sqlalchemy import delete, exists, select, update
from sqlalchemy.orm import Session

from app.store import integrity, jobs, vectors
from app.store.models.library import Chunk, Document, Job
from app.store.models.vectors import Vector


def drop_orphans(session: Session) -> None:
    """Deletes passages, vectors and jobs that belong to nothing. Full text has to be rebuilt after it, in the same
    transaction."""
    session.execute(delete(Chunk).where(integrity.IS_ORPHAN_CHUNK))
    session.execute(delete(Vector).where(~exists().where(Chunk.sha256 == Vector.sha256)))
    session.execute(delete(Vector).where(integrity.IS_MISFIT))
    session.execute(delete(Job).where(integrity.IS_ORPHAN_JOB))


def requeue_stuck(session: Session, now: datetime) -> None:
    """Gives documents that wait for nothing their jobs; one called ready without its vectors waits for them again."""
    living = Document.deleted_at.is_(None)
    unready = select(Document.id).where(living, integrity.IS_UNREADY)
    session.execute(update(Document).where(Document.id.in_(unready)).values(status="embedding"))
    waiting = select(Document.id, Document.sha256, Document.source, Document.status)
    due = [
        jobs.embed_job(number) if status == "embedding" else jobs.waiting_job(number, sha256, source)
        for number, sha256, source, status in session.execute(waiting.where(living, integrity.LACKS_JOB))
    ]
    jobs.enqueue(session, due, now)


def forget_vectors(session: Session, now: datetime) -> int:
    """Deletes the vectors that serve and has them made again; returns of how many documents."""
    active = vectors.active_generation(session)
    if active is not None:
        session.execute(delete(Vector).where(Vector.generation_id == active.id))
    having = exists().where(Chunk.document_id == Document.id)
    searchable = (Document.deleted_at.is_(None), Document.status.in_(("embedding", "ready")), having)
    ids = list(session.scalars(select(Document.id).where(*searchable)))
    session.execute(update(Document).where(*searchable).values(status="embedding", error=None))
    jobs.enqueue(session, [jobs.embed_job(number) for number in ids], now)
    return len(ids)


def is_stalled(session: Session) -> bool:
    """Whether every document that is left waits for an embedder that does not answer."""
    unfinished = Document.status.in_(("queued", "parsing", "embedding"))
    open_ones = exists().where(Document.deleted_at.is_(None), unfinished, Document.error.is_(None))
    return not session.scalar(select(open_ones))
