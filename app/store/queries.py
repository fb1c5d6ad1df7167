"""The log of answered questions, and the gaps it shows: what was asked and the documents did not answer.

Rows are written in the transaction that settles the answer (`app.turns.settle`). A deleted chat leaves its rows here,
without chat and message.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.models.chats import QueryLog

WITHOUT_DOCUMENTS = "without"
"""`query_log.mode` of a question that was asked without the documents: no gap in the library."""


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One answered question, for `query_log`."""

    created_at: datetime
    user_id: int
    chat_id: int | None
    message_id: int | None
    question: str
    mode: str
    top_score: float
    chunk_ids: list[int]
    read_docs: list[int]
    tool_calls: int
    rounds: int
    model: str
    thinking_chars: int
    answer_chars: int
    first_ms: int
    total_ms: int
    retries: int
    scaffold_stripped: int
    recovered: bool


@dataclass(frozen=True, slots=True)
class GapRow:
    """A question the documents did not answer; chat and message are None once deleted."""

    id: int
    created_at: datetime
    question: str
    top_score: float
    chat_id: int | None
    message_id: int | None


def add_query(session: Session, row: QueryRow) -> int:
    """Logs an answered question and gives the row's id."""
    query = QueryLog(**asdict(row))
    session.add(query)
    session.flush()
    return query.id


def list_gaps(session: Session, user_id: int, *, limit: int = 100) -> list[GapRow]:
    """The user's questions that the documents did not answer, newest first."""
    found = session.scalars(
        select(QueryLog)
        .where(QueryLog.user_id == user_id, QueryLog.mode == "deflected")
        .order_by(QueryLog.created_at.desc(), QueryLog.id.desc())
        .limit(limit)
    )
    return [
        GapRow(
            id=query.id,
            created_at=query.created_at,
            question=query.question,
            top_score=query.top_score,
            chat_id=query.chat_id,
            message_id=query.message_id,
        )
        for query in found
    ]
