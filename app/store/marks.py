"""Readers' verdicts on answers: helpful or not, one per user and answer.

Every function takes the user's id and checks the owner in SQL. A mark goes with its turn, and so with the chat. What a
mark saves for the evaluation is `app.turns.marking`'s business. Called by it, `app.api` and `app.web`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.errors import InvalidInputError
from app.store import turns
from app.store.models.chats import Message, Turn
from app.store.models.evaluation import AnswerMark

Verdict = Literal["helpful", "not_helpful"]

REASON_MAX_CHARS = 500


@dataclass(frozen=True, slots=True)
class MarkRow:
    """What a reader said of an answer."""

    turn_id: str
    verdict: Verdict
    reason: str | None
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class UnhelpfulRow:
    """A question whose answer was of no help."""

    turn_id: str
    chat_id: int | None
    question: str
    reason: str | None
    asked_at: datetime


def set_mark(
    session: Session, user_id: int, turn_id: str, verdict: Verdict, reason: str | None, now: datetime
) -> MarkRow:
    """Says so, in place of what was said before. Without a `reason` the one of the same verdict stays.

    Raises:
        NotFoundError: `turn_not_found`.
        InvalidInputError: `reason_too_long`.
    """
    turns.get_turn(session, user_id, turn_id)
    words = " ".join((reason or "").split()) or None
    if words is not None and len(words) > REASON_MAX_CHARS:
        raise InvalidInputError("reason_too_long", params={"limit": REASON_MAX_CHARS})
    mark = _find(session, user_id, turn_id)
    if mark is None:
        mark = AnswerMark(user_id=user_id, turn_id=turn_id, created_at=now)
        session.add(mark)
    elif words is None and mark.verdict == verdict:
        words = mark.reason
    mark.verdict, mark.reason, mark.changed_at = verdict, words, now
    session.flush()
    return _row(mark)


def clear_mark(session: Session, user_id: int, turn_id: str) -> MarkRow | None:
    """Takes back what was said; gives it, None where nothing was.

    Raises:
        NotFoundError: `turn_not_found`.
    """
    turns.get_turn(session, user_id, turn_id)
    mark = _find(session, user_id, turn_id)
    if mark is None:
        return None
    row = _row(mark)
    session.execute(delete(AnswerMark).where(AnswerMark.id == mark.id))
    return row


def marks_of(session: Session, user_id: int, turn_ids: Sequence[str]) -> dict[str, MarkRow]:
    """The user's marks on these turns, by turn."""
    query = select(AnswerMark).where(AnswerMark.user_id == user_id, AnswerMark.turn_id.in_(turn_ids))
    return {mark.turn_id: _row(mark) for mark in session.scalars(query)}


def list_unhelpful(session: Session, user_id: int, *, limit: int = 50) -> list[UnhelpfulRow]:
    """Questions whose grounded answers were of no help, the last said first; deflected ones are gaps already."""
    query = (
        select(Turn.id, Turn.chat_id, Message.content, AnswerMark.reason, Turn.started_at)
        .join(AnswerMark, AnswerMark.turn_id == Turn.id)
        .join(Message, (Message.turn_id == Turn.id) & (Message.role == "user"))
        .where(AnswerMark.user_id == user_id, AnswerMark.verdict == "not_helpful", Turn.mode == "grounded")
        .order_by(AnswerMark.changed_at.desc(), AnswerMark.id.desc())
        .limit(limit)
    )
    return [
        UnhelpfulRow(row.id, row.chat_id, row.content, row.reason, row.started_at) for row in session.execute(query)
    ]


def _find(session: Session, user_id: int, turn_id: str) -> AnswerMark | None:
    return session.scalar(select(AnswerMark).where(AnswerMark.user_id == user_id, AnswerMark.turn_id == turn_id))


def _row(mark: AnswerMark) -> MarkRow:
    return MarkRow(mark.turn_id, cast("Verdict", mark.verdict), mark.reason, mark.created_at, mark.changed_at)
