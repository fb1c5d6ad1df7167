"""The chunks that a search considers: those near by their words, those near by their meaning.

Owns both look-ups in SQL, each restricted to what the user may see before anything is counted. Orders nothing anew.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.search import fulltext
from app.search.query_embedder import Meaning
from app.search.scope import IS_VISIBLE, VISIBLE, Scope, values_of
from app.search.vectors import VectorIndex
from app.store.models import Chunk

DEPTH = 50
"""Places of each list that are fused."""

OVERFETCH = 2
"""Vectors looked at per place wanted, since some belong to documents the user may not see."""

_TABLE = Chunk.__table__.c
"""Columns of the table, not the class: rows then cost half as much to read."""

_ROWS = select(_TABLE.id, _TABLE.document_id, _TABLE.sha256)
_BY_ID = _ROWS.where(_TABLE.id.in_(values_of("ids")))
_BY_SHA = _ROWS.where(_TABLE.sha256.in_(values_of("shas")), IS_VISIBLE)
_ALLOWED = select(_TABLE.sha256).where(_TABLE.document_id.in_(VISIBLE))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk, and the text it shares with its duplicates."""

    chunk_id: int
    document_id: int
    sha256: str


def by_words(session: Session, expression: str | None, scope: Scope) -> list[Candidate]:
    """The chunks that fit a full-text expression, best first, the first of each text."""
    if expression is None:
        return []
    ids = fulltext.search(session, expression, scope, DEPTH)
    rows = session.execute(_BY_ID, {"ids": json.dumps(ids)})
    found = {row.id: Candidate(row.id, row.document_id, row.sha256) for row in rows}
    distinct: dict[str, Candidate] = {}
    for chunk_id in ids:
        distinct.setdefault(found[chunk_id].sha256, found[chunk_id])
    return list(distinct.values())


def by_meaning(session: Session, index: VectorIndex, meaning: Meaning, scope: Scope) -> list[Candidate]:
    """The chunks whose vectors lie nearest, nearest first, the first of each text.

    Where documents are named, only their vectors are looked at; also where too few of the nearest of all are visible.
    """
    if not scope.is_narrow:
        nearest = index.search(session, meaning.generation, meaning.vector, DEPTH * OVERFETCH)
        found = _located(session, [near.sha256 for near in nearest], scope)
        if len(found) >= DEPTH or len(nearest) < DEPTH * OVERFETCH:
            return found[:DEPTH]
    allowed = set(session.scalars(_ALLOWED, scope.parameters()))
    nearest = index.search(session, meaning.generation, meaning.vector, DEPTH, allowed)
    return _located(session, [near.sha256 for near in nearest], scope)


def _located(session: Session, shas: Sequence[str], scope: Scope) -> list[Candidate]:
    """The first visible chunk of each text, in the order of the texts."""
    first: dict[str, Candidate] = {}
    for row in session.execute(_BY_SHA, {"shas": json.dumps(shas), **scope.parameters()}):
        known = first.get(row.sha256)
        if known is None or row.id < known.chunk_id:
            first[row.sha256] = Candidate(row.id, row.document_id, row.sha256)
    return [first[sha] for sha in shas if sha in first]
