"""Questions that a person asked or kept, with the passages that were right: what two generations are compared on.

Owns reading them from the log of questions and from those kept for the evaluation. Passages are named by the hash of
their text, which holds for duplicates, too. Called by `app.ingest.comparison`, for every user; what one
user's questions say is shown to no other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.models.chats import Message, QueryLog, Turn
from app.store.models.evaluation import EvalQuestion
from app.store.models.library import Chunk, Collection, Document

LOOKED_AT = 400
"""Rows of the log that are looked at for the newest distinct questions."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as it was searched, and the keys of the passages its answer cited; empty where none is left."""

    user_id: int
    question: str
    cited: frozenset[str]


Source = Callable[[Session, int], Sequence[AskedQuestion]]
"""At most so many questions, the best first."""


def from_log(session: Session, limit: int) -> list[AskedQuestion]:
    """The newest distinct questions that were answered from documents."""
    query = (
        select(QueryLog.user_id, QueryLog.question, QueryLog.chunk_ids, Message.sources, Turn.numbers)
        .outerjoin(Message, Message.id == QueryLog.message_id)
        .outerjoin(Turn, Turn.id == Message.turn_id)
        .where(QueryLog.mode == "grounded")
        .order_by(QueryLog.created_at.desc(), QueryLog.id.desc())
        .limit(LOOKED_AT)
    )
    found: dict[tuple[int, str], tuple[str, list[int]]] = {}
    for row in session.execute(query):
        numbers: dict[str, Any] = row.numbers or {}
        question = str(numbers.get("searched") or row.question)
        key = row.user_id, question.casefold().strip()
        if key not in found and len(found) < limit:
            found[key] = question, _cited(row.sources)
    shas = shas_of(session, [chunk for _, chunks in found.values() for chunk in chunks])
    return [
        AskedQuestion(user_id, question, frozenset(shas[chunk] for chunk in chunks if chunk in shas))
        for (user_id, _), (question, chunks) in found.items()
    ]


def from_saved(session: Session, limit: int) -> list[AskedQuestion]:
    """The newest questions kept for the evaluation that have right passages and lean on no earlier question."""
    query = (
        select(EvalQuestion.user_id, EvalQuestion.question, EvalQuestion.history, EvalQuestion.passages)
        .where(EvalQuestion.removed_at.is_(None))
        .order_by(EvalQuestion.id.desc())
    )
    whole = [row for row in session.execute(query) if row.passages and not row.history]
    return [AskedQuestion(row.user_id, row.question, frozenset(_right(session, row.passages))) for row in whole[:limit]]


def shas_of(session: Session, chunk_ids: Iterable[int]) -> dict[int, str]:
    """The keys of those passages that are still there."""
    ids = list(dict.fromkeys(chunk_ids))
    found: dict[int, str] = {}
    for start in range(0, len(ids), 500):
        rows = session.execute(select(Chunk.id, Chunk.sha256).where(Chunk.id.in_(ids[start : start + 500])))
        found.update({row.id: row.sha256 for row in rows})
    return found


def _cited(sources: list[dict[str, Any]] | None) -> list[int]:
    return [int(source["chunk_id"]) for source in sources or () if source.get("cited") and source.get("chunk_id")]


def _right(session: Session, passages: list[dict[str, Any]]) -> set[str]:
    """The keys of what overlaps with the stretches that were marked."""
    found: set[str] = set()
    for passage in passages:
        query = (
            select(Chunk.sha256)
            .join(Document, Document.id == Chunk.document_id)
            .join(Collection, Collection.id == Document.collection_id)
            .where(
                Collection.slug == passage["collection"],
                Document.path == passage["path"],
                Document.deleted_at.is_(None),
                Chunk.char_start < passage["char_end"],
                Chunk.char_end > passage["char_start"],
            )
        )
        found.update(session.scalars(query))
    return found
