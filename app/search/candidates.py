"""The chunks that a search considers: those near by their words, those near by their meaning.

Owns both look-ups in SQL, each restricted to what the user may see before anything is counted. Orders nothing anew.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.search import fulltext
from app.search.fulltext import Match
from app.search.query_embedder import Meaning
from app.search.scope import VISIBLE, Scope, is_visible
from app.search.vectors import Neighbour, VectorIndex
from app.store.among import values_of
from app.store.models import Chunk
from app.store.prepared import Prepared

BY_WORDS = 100
DEPTH = 50
"""Places of full text's list and of the vectors' that are weighed together."""

OVERFETCH = 2
"""Vectors looked at per place wanted, since some belong to documents the user may not see."""

LOCATED = 60
"""Of these, how many are looked up at first: most users may see nearly everything."""

_TABLE = Chunk.__table__.c
_ROWS = select(_TABLE.id, _TABLE.document_id, _TABLE.sha256)
_BY_ID = Prepared(_ROWS.where(_TABLE.id.in_(values_of("ids"))))
_TEXTS = Prepared(
    select(_TABLE.id, _TABLE.document_id, _TABLE.sha256, _TABLE.heading + "\n" + _TABLE.text).where(
        _TABLE.id.in_(values_of("ids")), is_visible(_TABLE.document_id)
    )
)
_BY_SHA = Prepared(_ROWS.where(_TABLE.sha256.in_(values_of("shas")), is_visible(_TABLE.document_id)))
_ALLOWED = Prepared(select(_TABLE.sha256).where(_TABLE.document_id.in_(VISIBLE)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk, the text it shares with its duplicates, and how well its words match where they led to it, 0..1."""

    chunk_id: int
    document_id: int
    sha256: str
    strength: float = 0.0


@dataclass(frozen=True, slots=True)
class Located:
    """A chunk found by parts of words, with the text that was searched."""

    chunk_id: int
    document_id: int
    sha256: str
    text: str


def located(session: Session, chunk_ids: Sequence[int], scope: Scope) -> dict[int, Located]:
    """Those of the chunks that are visible, by id, in the order given."""
    listed = {"ids": json.dumps(list(chunk_ids)), **scope.parameters()}
    rows = {row[0]: Located(*row) for row in _TEXTS.rows(session, listed)}
    return {chunk_id: rows[chunk_id] for chunk_id in chunk_ids if chunk_id in rows}


def by_words(session: Session, matches: Sequence[Match], ceiling: float, scope: Scope) -> list[Candidate]:
    """The chunks that fit the first match that finds enough, or the last, best first, the first of each text; their
    strength is a share of `ceiling`."""
    ids: dict[int, float] = {}
    for match in matches:
        ids = fulltext.search(session, match, scope, BY_WORDS)
        if len(ids) == BY_WORDS:
            break
    if not ids:
        return []
    listed = json.dumps(list(ids))
    found = {
        row[0]: Candidate(*row, strength=min(1.0, ids[row[0]] / ceiling))
        for row in _BY_ID.rows(session, {"ids": listed})
    }
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
        found = _located(session, nearest[:LOCATED], scope)
        if len(found) < DEPTH:
            found += _located(session, nearest[LOCATED:], scope)
        if len(found) >= DEPTH or len(nearest) < DEPTH * OVERFETCH:
            return found[:DEPTH]
    allowed = {row[0] for row in _ALLOWED.rows(session, scope.parameters())}
    nearest = index.search(session, meaning.generation, meaning.vector, DEPTH, allowed)
    return _located(session, nearest, scope)


def _located(session: Session, nearest: Sequence[Neighbour], scope: Scope) -> list[Candidate]:
    """The first visible chunk of each text, in the order of the texts."""
    listed = json.dumps([near.sha256 for near in nearest])
    first: dict[str, tuple[int, int]] = {}
    for row in _BY_SHA.rows(session, {"shas": listed, **scope.parameters()}):
        known = first.get(row.sha256)
        if known is None or row.id < known[0]:
            first[row.sha256] = (row.id, row.document_id)
    return [Candidate(*first[near.sha256], near.sha256) for near in nearest if near.sha256 in first]
