"""What readers said of answers, the questions kept for the evaluation, and its runs."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class AnswerMark(Base):
    """A reader's verdict on an answer, one per user and answer. Goes with the answer's chat."""

    __tablename__ = "answer_marks"
    __table_args__ = (UniqueConstraint("user_id", "turn_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    turn_id: Mapped[str] = mapped_column(ForeignKey("turns.id", ondelete="CASCADE"), index=True)
    verdict: Mapped[str] = mapped_column(String(12))
    """helpful, not_helpful."""
    reason: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime)


class EvalQuestion(Base):
    """A question with what would be right. Outlives the chat it was asked in; names documents by collection and path,
    so that it outlives their being read again as well."""

    __tablename__ = "eval_questions"
    __table_args__ = (UniqueConstraint("user_id", "key"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    key: Mapped[str] = mapped_column(String(64))
    """A hash of the question and the questions it leans on: the same question is kept once."""
    question: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(40))
    history: Mapped[list[dict[str, str]]] = mapped_column(JSON)
    """Earlier turns that the question leans on, oldest first: question and answer each."""
    passages: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    """What is right: collection (slug), path, char_start, char_end, quote each. Empty: the documents don't say."""
    needs_all: Mapped[bool]
    """Whether every passage is needed; else any one of them will do."""
    by_mark: Mapped[bool]
    """Whether a "Helpful" alone saved it, so that taking that back removes it."""
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when it is taken out; for a day that can be undone."""
    turn_id: Mapped[str | None] = mapped_column(ForeignKey("turns.id", ondelete="SET NULL"), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class EvalRun(Base):
    """One evaluation of the saved questions; the newest of a user's are kept. At most one of a user's is under way."""

    __tablename__ = "eval_runs"
    __table_args__ = (
        Index(
            "uq_eval_runs_running_user",
            "user_id",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index("ix_eval_runs_user", "user_id", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    state: Mapped[str] = mapped_column(String(12))
    """running, done, cancelled, failed, interrupted."""
    changes: Mapped[dict[str, Any]] = mapped_column(JSON)
    """What the second settings change; empty: only the current ones are asked."""
    done: Mapped[int]
    """Questions asked so far, those of both settings together."""
    total: Mapped[int]
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    error_code: Mapped[str | None] = mapped_column(String(40))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
