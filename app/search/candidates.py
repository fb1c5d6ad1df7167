"""The chunks that a search considers: those near by their words, those near by their meaning.

Owns both look-ups in SQL, each restricted to what the user may see before anything is counted. Orders nothing anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Integer, Select, literal_column, select
from sqlalchemy.orm import Session

from app.search import fulltext
from app.search.embeddings import FloatVector
from app.search.vectors import VectorIndex
from app.store.among import among
from app.store.models import Chunk
from app.store.vectors import ActiveGeneration

DEPTH = 50
"""Places of each list that are fused."""

OVERFETCH = 2
"""Vectors looked at per place wanted, since some belong to documents the user may not see."""


_COLUMNS = (Chunk.__table__.c.id, Chunk.__table__.c.document_id, Chunk.__table__.c.sha256)
"""Of the table, not the class: rows then cost half as much to read."""

_DOCUMENT = literal_column("+chunks.document_id", Integer)
"""The plus keeps SQLite from walking every chunk of every visible document to find a hundred by their text."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk, and the text it shares with its duplicates."""

    chunk_id: int
    document_id: int
    sha256: str


def by_words(session: Session, expression: str | None, visible: Select[int]) -> list[Candidate]:
    """The chunks that fit a full-text expression, best first, the first of each text."""
    if expression is None:
        return []
    ids = fulltext.search(session, expression, visible, DEPTH)
    found = {candidate.chunk_id: candidate for candidate in _select(session, among(Chunk.id, ids))}
    return _distinct([found[chunk_id] for chunk_id in ids])


def by_meaning(
    session: Session,
    index: VectorIndex,
    generation: ActiveGeneration,
    query: FloatVector,
    visible: Select[int],
    *,
    narrow: bool,
) -> list[Candidate]:
    """The chunks whose vectors lie nearest, nearest first, the first of each text.

    `narrow` says that few documents are visible: then only their vectors are looked at. That is also what happens when
    among the nearest of all too few are visible.
    """
    if not narrow:
        nearest = [near.sha256 for near in index.search(session, generation, query, DEPTH * OVERFETCH)]
        found = _located(session, nearest, visible)
        if len(found) >= DEPTH or len(nearest) < DEPTH * OVERFETCH:
            return found[:DEPTH]
    allowed = set(session.scalars(select(Chunk.sha256).where(Chunk.document_id.in_(visible))))
    nearest = [near.sha256 for near in index.search(session, generation, query, DEPTH, allowed)]
    return _located(session, nearest, visible)


def _located(session: Session, shas: Sequence[str], visible: Select[int]) -> list[Candidate]:
    found = _select(session, among(Chunk.sha256, shas), _DOCUMENT.in_(visible))
    first = {candidate.sha256: candidate for candidate in reversed(found)}
    return [first[sha] for sha in shas if sha in first]


def _select(session: Session, *conditions: ColumnElement[bool]) -> list[Candidate]:
    rows = session.execute(select(*_COLUMNS).where(*conditions))
    return sorted((Candidate(*row) for row in rows), key=lambda candidate: candidate.chunk_id)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    first = {candidate.sha256: candidate for candidate in reversed(candidates)}
    return [candidate for candidate in candidates if first[candidate.sha256] is candidate]
