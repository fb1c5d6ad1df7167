"""Generations side by side: what is kept of each, how far one is that is being built, which texts it still lacks.

Owns reading the `generations` table beyond the one that serves (`app.store.vectors.active_generation`, on the path of a
search). How they change is `app.store.generation_changes`'. Used by the builder, the settings page and the comparison.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import distinct, exists, func, select
from sqlalchemy.orm import Session

from app.store import vectors
from app.store.models.library import Chunk, Document
from app.store.models.vectors import Generation, Vector

OVERHEAD_BYTES = 350
"""Of a vector's row and its two entries in indices, beside the vector itself: 40,000 of 384 numbers take 44.8 MB."""

State = Literal["building", "active", "retired", "dropping"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How vectors are made: by which model, how long they are, and where it answers (`base_url` None: built in)."""

    model: str
    dim: int
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A generation with how far it is. Fields as in `app.store.models.vectors.Generation`."""

    id: int
    model: str
    dim: int
    state: str
    base_url: str | None
    api_key: str | None = field(repr=False)
    auto_switch: bool
    paused_at: datetime | None
    problem: str | None
    built_at: datetime | None
    compared: dict[str, Any] | None
    created_at: datetime
    switched_at: datetime | None
    floor: float | None = None
    floor_rule: str | None = None

    def as_active(self) -> vectors.ActiveGeneration:
        """As a search takes it."""
        return vectors.ActiveGeneration(self.id, self.model, self.dim, self.base_url, self.api_key, self.floor)


@dataclass(frozen=True, slots=True)
class MissingText:
    """A passage whose text has no vector yet, with what the vector is made from."""

    chunk_id: int
    sha256: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Counted:
    """How many of the library's distinct texts have a vector of a generation."""

    done: int
    total: int


def list_generations(session: Session) -> list[GenerationRow]:
    """Every generation but those that are being deleted, newest first."""
    query = select(Generation).where(Generation.state != "dropping").order_by(Generation.id.desc())
    return [row_of(generation) for generation in session.scalars(query)]


def get(session: Session, state: State) -> GenerationRow | None:
    """The generation in a state; the last one retired, where there may be several."""
    order = (Generation.retired_at.desc(), Generation.id.desc())
    found = session.scalars(select(Generation).where(Generation.state == state).order_by(*order)).first()
    return row_of(found) if found is not None else None


def unmeasured(session: Session, rule: str) -> list[GenerationRow]:
    """The generations whose floor was not measured by `rule` and that serve or are built, what serves first."""
    due = (Generation.state.in_(("active", "building")), func.coalesce(Generation.floor_rule, "") != rule)
    return [row_of(row) for row in session.scalars(select(Generation).where(*due).order_by(Generation.state))]


def missing_texts(session: Session, generation_id: int, after_chunk: int, limit: int) -> list[MissingText]:
    """The first passages with an id above `after_chunk` whose text has no vector, each text once, by id."""
    has_vector = exists().where(Vector.generation_id == generation_id, Vector.sha256 == Chunk.sha256)
    query = (
        select(Chunk.id, Chunk.sha256, Document.title, Chunk.heading, Chunk.text)
        .join(Document, Document.id == Chunk.document_id)
        .where(Chunk.id > after_chunk, Document.deleted_at.is_(None), ~has_vector)
        .order_by(Chunk.id)
        .limit(limit)
    )
    texts = {row.sha256: MissingText(*row) for row in reversed(session.execute(query).all())}
    return sorted(texts.values(), key=lambda text: text.chunk_id)


def complete_of(session: Session, model: str) -> vectors.ActiveGeneration | None:
    """The generation of a model that a question can be compared with: what serves, is built, or is kept."""
    for row in sorted(list_generations(session), key=lambda row: row.state):
        if row.model == model and (row.state != "building" or row.built_at is not None):
            return row.as_active()
    return None


def count(session: Session, generation_id: int) -> Counted:
    """How far a generation is. 0.1 s at 100,000 texts."""
    total = session.scalar(select(func.count(distinct(Chunk.sha256)))) or 0
    done = session.scalar(select(func.count()).where(Vector.generation_id == generation_id)) or 0
    return Counted(min(done, total), total)


def size_bytes(session: Session, generation_id: int) -> int:
    """About what the vectors take on the disk."""
    dim = session.scalar(select(Generation.dim).where(Generation.id == generation_id)) or 0
    rows = session.scalar(select(func.count()).where(Vector.generation_id == generation_id)) or 0
    return rows * (2 * dim + OVERHEAD_BYTES)


def row_of(row: Generation) -> GenerationRow:
    """The values of a row."""
    return GenerationRow(
        id=row.id,
        model=row.model,
        dim=row.dim,
        state=row.state,
        base_url=row.base_url,
        api_key=row.api_key,
        auto_switch=row.auto_switch,
        paused_at=row.paused_at,
        problem=row.problem,
        built_at=row.built_at,
        compared=row.compared,
        created_at=row.created_at,
        switched_at=row.switched_at,
        floor=row.floor,
        floor_rule=row.floor_rule,
    )
