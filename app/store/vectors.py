"""Embedding generations and their vectors: float32 matrices in, float32 matrices out.

Owns which generation is active and how a vector is stored (little-endian float16). It embeds nothing and ranks nothing:
`app.search` does. How one generation follows another is in `app.store.generation_changes`. Called by the ingest
pipeline (what is missing, add, delete) and by the resident index (what is new).
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CursorResult, Integer, Table, bindparam, delete, exists, insert, literal_column, select
from sqlalchemy.orm import Session

from app.store.among import values_of
from app.store.models import Chunk, Document, Generation, Vector
from app.store.prepared import Prepared

BATCH = 5_000
"""Values in one IN list, rows in one batch: well under SQLite's 32,766 variables, and 4 MB of blobs."""

_GENERATION = literal_column("+vectors.generation_id", Integer)
"""The plus makes SQLite walk the rows by id; through the unique index it would sort the whole generation per batch."""

FloatMatrix = NDArray[np.float32]

_ACTIVE = Prepared(
    select(
        *(Generation.id, Generation.model, Generation.dim, Generation.base_url, Generation.api_key, Generation.floor)
    ).where(Generation.state == "active")
)
_LAST = Prepared(select(Vector.id).order_by(Vector.id.desc()).limit(1))
_BY_SHA = Prepared(
    select(Vector.sha256, Vector.embedding).where(
        Vector.generation_id == bindparam("generation", type_=Integer), Vector.sha256.in_(values_of("shas"))
    )
)


@dataclass(frozen=True, slots=True)
class ActiveGeneration:
    """A generation as a search needs it, mostly the one that serves: whose vectors, and where their embedder is found
    (`base_url` None: built in, or not known), and the cosine that counts as 0 (`floor` None: not measured).

    `fresh` is True for the call that made it the active one: whoever called has to queue the embedding of
    `unembedded_documents`.
    """

    id: int
    model: str
    dim: int
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    floor: float | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Some vectors of one generation, in id order: `matrix[i]` (float32, shape (n, dim)) belongs to `shas[i]`."""

    last_id: int
    shas: list[str]
    matrix: FloatMatrix


def active_generation(session: Session) -> ActiveGeneration | None:
    """The generation that serves, or None before the first embedding."""
    rows = _ACTIVE.rows(session, {})
    return ActiveGeneration(*rows[0]) if rows else None


def ensure_generation(session: Session, model: str, dim: int, chunker: str, now: datetime) -> ActiveGeneration:
    """Gets, wakes or makes the generation of this embedder, and makes it the only active one.

    Any other active generation is retired: its vectors stay (going back costs nothing) and never mix with these. A
    vector depends on its text and the model only, so another chunker goes on with the vectors of the texts that it
    leaves as they were.
    """
    known = (Generation.model == model, Generation.dim == dim, Generation.state.in_(("active", "building", "retired")))
    row = session.scalars(select(Generation).where(*known).order_by(Generation.state, Generation.id.desc())).first()
    active = session.scalars(select(Generation).where(Generation.state == "active")).first()
    fresh = active is None or row is not active
    if active is not None and row is not active:
        active.state, active.retired_at = "retired", now
        session.flush()
    if row is None:
        row = Generation(model=model, dim=dim, normalised=True, created_at=now, auto_switch=False)
        session.add(row)
    row.chunker = chunker
    if row.state != "active":
        row.state, row.switched_at, row.retired_at, row.paused_at, row.problem = "active", now, None, None, None
        row.auto_switch = False
    session.flush()
    return ActiveGeneration(row.id, row.model, row.dim, row.base_url, row.api_key, row.floor, fresh)


def missing_shas(session: Session, generation_id: int, document_id: int) -> list[str]:
    """The distinct chunk texts of a document that the generation has no vector of, in reading order."""
    rows = session.scalars(
        select(Chunk.sha256)
        .where(
            Chunk.document_id == document_id,
            ~exists().where(Vector.generation_id == generation_id, Vector.sha256 == Chunk.sha256),
        )
        .order_by(Chunk.ordinal)
    )
    return list(dict.fromkeys(rows))


def unembedded_documents(session: Session, generation_id: int) -> list[int]:
    """Ids of the searchable documents that have a chunk without a vector in the generation; those that wait to be read
    get theirs after that."""
    return list(
        session.scalars(
            select(Chunk.document_id)
            .join(Document, Document.id == Chunk.document_id)
            .where(
                Document.deleted_at.is_(None),
                Document.status.in_(("embedding", "ready")),
                ~exists().where(Vector.generation_id == generation_id, Vector.sha256 == Chunk.sha256),
            )
            .group_by(Chunk.document_id)
            .order_by(Chunk.document_id)
        )
    )


def add_vectors(session: Session, generation_id: int, shas: Sequence[str], matrix: FloatMatrix) -> int:
    """Stores `matrix[i]` (unit length) for `shas[i]`; those already there are left alone. Returns how many were new.

    Raises:
        ValueError: when the rows don't fit the keys or the generation's dimension.
    """
    dim = session.scalar(select(Generation.dim).where(Generation.id == generation_id))
    if matrix.shape != (len(shas), dim):
        raise ValueError(f"vectors of shape {matrix.shape} for {len(shas)} texts of dimension {dim}")
    if not shas:
        return 0
    halves = matrix.astype("<f2")
    result = session.execute(
        insert(cast("Table", Vector.__table__)).prefix_with("OR IGNORE", dialect="sqlite"),
        [
            {"generation_id": generation_id, "sha256": sha, "embedding": half.tobytes()}
            for sha, half in zip(shas, halves, strict=True)
        ],
    )
    return _rowcount(result)


def delete_unused(session: Session, shas: Sequence[str]) -> list[str]:
    """Deletes, in every generation, the vectors of those texts that no chunk holds any more; returns these texts."""
    gone: list[str] = []
    for part in _parts(list(dict.fromkeys(shas))):
        held = set(session.scalars(select(Chunk.sha256).where(Chunk.sha256.in_(part))))
        unused = [sha for sha in part if sha not in held]
        session.execute(delete(Vector).where(Vector.sha256.in_(unused)))
        gone += unused
    return gone


def read_after(session: Session, generation_id: int, after_id: int) -> Iterator[VectorRows]:
    """The generation's vectors with an id above `after_id`, in batches of at most `BATCH`."""
    dim = session.scalar(select(Generation.dim).where(Generation.id == generation_id))
    table = Vector.__table__.c
    while dim is not None:
        rows = session.execute(
            select(table.id, table.sha256, table.embedding)
            .where(_GENERATION.in_((generation_id,)), table.id > after_id)
            .order_by(table.id)
            .limit(BATCH)
        ).all()
        if not rows:
            return
        after_id = rows[-1].id
        yield VectorRows(after_id, [row.sha256 for row in rows], _matrix([row.embedding for row in rows], dim))


def read_by_sha(session: Session, generation_id: int, shas: Collection[str]) -> dict[str, FloatMatrix]:
    """The vectors (float32, shape (dim,)) of those texts that have one in the generation."""
    if not shas:
        return {}
    rows = _BY_SHA.rows(session, {"generation": generation_id, "shas": json.dumps(list(shas))})
    if not rows:
        return {}
    matrix = _matrix([row.embedding for row in rows], len(rows[0].embedding) // 2)
    return dict(zip((row.sha256 for row in rows), matrix, strict=True))


def last_id(session: Session) -> int:
    """The highest id in use, whatever the generation; 0 when there is none. Costs one step in the table's tree."""
    rows = _LAST.rows(session, {})
    return int(rows[0][0]) if rows else 0


def _matrix(blobs: list[bytes], dim: int) -> FloatMatrix:
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dim).astype(np.float32)


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


def _rowcount(result: object) -> int:
    return cast("CursorResult[Any]", result).rowcount
