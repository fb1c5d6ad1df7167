"""Chats, their messages, the turns that answer them, and the log of questions."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Float,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class Chat(Base):
    """A conversation. `collection_filter` is a list of collection ids, or None for the whole library."""

    __tablename__ = "chats"
    __table_args__ = (
        Index("ix_chats_user_updated", "user_id", "updated_at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    title: Mapped[str] = mapped_column(Text)
    folder: Mapped[str | None] = mapped_column(String(200))
    pinned: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    collection_filter: Mapped[list[int] | None] = mapped_column(JSON)


class Message(Base):
    """A question or an answer. `content` is filtered text only; `sources` are the passages of the turn."""

    __tablename__ = "messages"
    __table_args__ = (
        Index("ix_messages_chat", "chat_id", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    chat_id: Mapped[int] = mapped_column(ForeignKey("chats.id", ondelete="CASCADE"))
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), index=True)
    turn_id: Mapped[str] = mapped_column(String(32), index=True)
    role: Mapped[str] = mapped_column(String(10))
    content: Mapped[str] = mapped_column(Text)
    thinking: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(12))
    """streaming, complete, stopped, error, interrupted."""
    error_code: Mapped[str | None] = mapped_column(String(40))
    sources: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    """The `sources` (or, when deflected, `nearest`) of the frames, with `cited`, `quote` and `marks` once checked."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Turn(Base):
    """One question and its settled answer: state, the numbers of the per-turn line, the prompt as sent."""

    __tablename__ = "turns"
    __table_args__ = (
        UniqueConstraint("user_id", "client_key"),
        Index(
            "uq_turns_running_chat",
            "chat_id",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index("ix_turns_state", "state"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    chat_id: Mapped[int | None] = mapped_column(ForeignKey("chats.id", ondelete="CASCADE"), index=True)
    client_key: Mapped[str | None] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(12))
    """running, done, error, stopped, interrupted."""
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    mode: Mapped[str | None] = mapped_column(String(10))
    outcome: Mapped[str | None] = mapped_column(String(12))
    error_code: Mapped[str | None] = mapped_column(String(40))
    numbers: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """`TurnStats.numbers()`: the rest of the per-turn line."""
    prompt: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON)
    """The messages as sent, for the receipt."""


class QueryLog(Base):
    """One answered question; written with the answer in one transaction, before `done` is sent."""

    __tablename__ = "query_log"
    __table_args__ = (Index("ix_query_log_user_created", "user_id", "created_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    chat_id: Mapped[int | None] = mapped_column(ForeignKey("chats.id", ondelete="SET NULL"), index=True)
    message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="SET NULL"), index=True)
    question: Mapped[str] = mapped_column(Text)
    mode: Mapped[str] = mapped_column(String(10))
    top_score: Mapped[float] = mapped_column(Float)
    chunk_ids: Mapped[list[int]] = mapped_column(JSON)
    read_docs: Mapped[list[int]] = mapped_column(JSON)
    tool_calls: Mapped[int]
    rounds: Mapped[int]
    model: Mapped[str] = mapped_column(String(256))
    thinking_chars: Mapped[int]
    answer_chars: Mapped[int]
    first_ms: Mapped[int]
    total_ms: Mapped[int]
    retries: Mapped[int]
    scaffold_stripped: Mapped[int]
    recovered: Mapped[bool]
