"""Whether everything in the database belongs to something: what no crash and no race may leave behind.

Reads only. Called by tests after every kill and by `docent doctor` (`app.ingest.upkeep`); stored files are compared by
the caller, who knows the data folder.
"""

from dataclasses import dataclass, fields

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, text
from sqlalchemy.orm import Session

from app.store.jobs import LIVE
from app.store.models.base import Base
from app.store.models.library import Chunk, Document, Job
from app.store.models.vectors import Generation, Vector

_UNINDEXED = text("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM chunks_fts_docsize)")
_INDEXED = text("SELECT count(*) FROM chunks_fts_docsize WHERE id NOT IN (SELECT id FROM chunks)")
_UNPARTED = text("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM chunks_grams_docsize)")
_PARTED = text("SELECT count(*) FROM chunks_grams_docsize WHERE id NOT IN (SELECT id FROM chunks)")


@dataclass(frozen=True, slots=True)
class Orphans:
    """Counts; all zero in a sound database at rest."""

    chunks: int
    """Passages whose document is gone, taken out, or not searchable."""
    vectors: int
    """Vectors no passage has the text of."""
    misfits: int
    """Vectors of another length than their generation's."""
    unindexed: int
    """Passages full text does not know."""
    indexed: int
    """Full-text rows without a passage."""
    unparted: int
    """Passages the trigram index does not know, as while it is being filled."""
    parted: int
    """Its rows without a passage."""
    jobs: int
    """Live jobs of documents that are gone."""
    stuck: int
    """Documents that wait for a job nobody queued."""
    unready: int
    """Documents called ready although a vector is missing."""

    @property
    def is_sound(self) -> bool:
        """Whether there are none."""
        return not any(getattr(self, field.name) for field in fields(self))


_LIVING = Document.deleted_at.is_(None)
_SEARCHABLE = Document.status.in_(("queued", "parsing", "embedding", "ready"))
_LIVE_JOB = and_(Job.document_id == Document.id, Job.state.in_(LIVE))
_HAS_VECTOR = exists().where(
    Vector.sha256 == Chunk.sha256, Vector.generation_id == Generation.id, Generation.state == "active"
)

IS_ORPHAN_CHUNK = ~exists().where(Document.id == Chunk.document_id, _LIVING, _SEARCHABLE)
IS_ORPHAN_JOB = and_(
    Job.state.in_(LIVE), Job.document_id.is_not(None), ~exists().where(Document.id == Job.document_id, _LIVING)
)
LACKS_JOB = or_(
    and_(Document.status.in_(("queued", "parsing")), ~exists().where(_LIVE_JOB, Job.kind.in_(("ingest", "fetch")))),
    and_(
        Document.status == "embedding",
        Document.error.is_distinct_from("embed_failed"),
        ~exists().where(_LIVE_JOB, Job.kind == "embed"),
    ),
)
IS_UNREADY = and_(Document.status == "ready", exists().where(Chunk.document_id == Document.id, ~_HAS_VECTOR))


IS_MISFIT = exists().where(Generation.id == Vector.generation_id, func.length(Vector.embedding) != 2 * Generation.dim)


def orphans(session: Session) -> Orphans:
    """Counts them all: some seconds at 100,000 passages."""

    def count(entity: type[Base], *conditions: ColumnElement[bool]) -> int:
        return session.scalar(select(func.count()).select_from(entity).where(*conditions)) or 0

    return Orphans(
        chunks=count(Chunk, IS_ORPHAN_CHUNK),
        vectors=count(Vector, ~exists().where(Chunk.sha256 == Vector.sha256)),
        misfits=count(Vector, IS_MISFIT),
        unindexed=session.scalar(_UNINDEXED) or 0,
        indexed=session.scalar(_INDEXED) or 0,
        unparted=session.scalar(_UNPARTED) or 0,
        parted=session.scalar(_PARTED) or 0,
        jobs=count(Job, IS_ORPHAN_JOB),
        stuck=count(Document, _LIVING, LACKS_JOB),
        unready=count(Document, _LIVING, IS_UNREADY),
    )
