"""Chats and their messages: list, read, rename, delete, and what earlier turns of a chat said.

Every function takes the user's id and checks the owner in SQL: a foreign chat looks like a missing one. Starting and
settling turns is `app.store.turns`. Called by `app.api`, `app.web` and `app.turns`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from app.errors import InvalidInputError, NotFoundError
from app.store.models.chats import Chat, Message

TITLE_CHARS = 80
TITLE_MAX_CHARS = 200

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A conversation; `collection_filter` None means the whole library."""

    id: int
    user_id: int
    title: str
    folder: str | None
    pinned: bool
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    collection_filter: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A question (`user`) or an answer (`assistant`).

    `status` is streaming, complete, stopped, error or interrupted; `sources` are the passages of the turn as the
    frames carry them (the nearest ones of a deflected turn), with `cited` once the answer is settled.
    """

    id: int
    chat_id: int
    parent_id: int | None
    turn_id: str
    role: str
    content: str
    thinking: str
    status: str
    error_code: str | None
    sources: tuple[dict[str, Any], ...]
    created_at: datetime


def title_of(question: str) -> str:
    """A chat's title: its first question on one line, cut at about 80 characters on a word, with an ellipsis."""
    line = " ".join(question.split())
    if len(line) <= TITLE_CHARS:
        return line
    head = line[: TITLE_CHARS + 1]
    cut = head.rfind(" ")
    return head[: cut if cut >= TITLE_CHARS // 2 else TITLE_CHARS].rstrip(" ,;:.-") + "…"


def create_chat(session: Session, user_id: int, title: str, now: datetime) -> ChatRow:
    """A new, empty chat."""
    chat = Chat(user_id=user_id, title=title, pinned=False, created_at=now, updated_at=now)
    session.add(chat)
    session.flush()
    return _chat_row(chat)


def list_chats(session: Session, user_id: int, *, limit: int = 200, offset: int = 0) -> list[ChatRow]:
    """The user's chats, the one asked in last first."""
    found = session.scalars(
        select(Chat)
        .where(Chat.user_id == user_id, Chat.archived_at.is_(None))
        .order_by(Chat.updated_at.desc(), Chat.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return [_chat_row(chat) for chat in found]


def get_chat(session: Session, user_id: int, chat_id: int) -> ChatRow:
    """One chat.

    Raises:
        NotFoundError: `chat_not_found`, also for another user's chat.
    """
    chat = session.scalar(select(Chat).where(_owned(user_id, chat_id)))
    if chat is None:
        raise NotFoundError("chat_not_found")
    return _chat_row(chat)


def rename_chat(session: Session, user_id: int, chat_id: int, title: str) -> ChatRow:
    """Gives the chat another title (one line, at most 200 characters); its place in the list stays.

    Raises:
        InvalidInputError: `title_empty`, `title_too_long`.
        NotFoundError: `chat_not_found`.
    """
    line = " ".join(title.split())
    if not line:
        raise InvalidInputError("title_empty")
    if len(line) > TITLE_MAX_CHARS:
        raise InvalidInputError("title_too_long", params={"limit": TITLE_MAX_CHARS})
    session.execute(update(Chat).where(_owned(user_id, chat_id)).values(title=line))
    return get_chat(session, user_id, chat_id)


def delete_chat(session: Session, user_id: int, chat_id: int) -> None:
    """Removes the chat with its messages and turns; the log of questions keeps its rows, without the chat.

    Raises:
        NotFoundError: `chat_not_found`.
    """
    get_chat(session, user_id, chat_id)
    # Unlinked first: each message is its answer's parent, and SQLite follows a cascade no deeper than 1,000 rows.
    session.execute(update(Message).where(Message.chat_id == chat_id).values(parent_id=None))
    session.execute(delete(Chat).where(_owned(user_id, chat_id)))


def set_collection_filter(session: Session, user_id: int, chat_id: int, collections: tuple[int, ...] | None) -> None:
    """Remembers which collections the chat's questions go to; None or empty means all."""
    session.execute(
        update(Chat)
        .where(_owned(user_id, chat_id))
        .values(collection_filter=list(collections) if collections else None)
    )


def list_messages(session: Session, user_id: int, chat_id: int) -> list[MessageRow]:
    """All messages of a chat in order.

    Raises:
        NotFoundError: `chat_not_found`.
    """
    get_chat(session, user_id, chat_id)
    found = session.scalars(select(Message).where(Message.chat_id == chat_id).order_by(Message.id))
    return [_message_row(message) for message in found]


def get_message(session: Session, user_id: int, message_id: int) -> MessageRow:
    """One message of a chat of the user's.

    Raises:
        NotFoundError: `message_not_found`.
    """
    message = session.scalar(select(Message).join(Chat).where(Message.id == message_id, Chat.user_id == user_id))
    if message is None:
        raise NotFoundError("message_not_found")
    return _message_row(message)


def answer_of(session: Session, user_id: int, turn_id: str) -> MessageRow | None:
    """The answer that a turn of the user's wrote, or is writing."""
    message = session.scalar(
        select(Message)
        .join(Chat)
        .where(Message.turn_id == turn_id, Message.role == "assistant", Chat.user_id == user_id)
    )
    return None if message is None else _message_row(message)


def earlier_messages(
    session: Session, user_id: int, chat_id: int, *, before_id: int, limit: int = 20
) -> list[MessageRow]:
    """The last `limit` messages before the message `before_id` that hold text, oldest first: the model's memory."""
    found = session.scalars(
        select(Message)
        .join(Chat)
        .where(
            Message.chat_id == chat_id,
            Chat.user_id == user_id,
            Message.id < before_id,
            func.length(Message.content) > 0,
        )
        .order_by(Message.id.desc())
        .limit(limit)
    )
    return [_message_row(message) for message in reversed(list(found))]


def earlier_questions(session: Session, user_id: int, chat_id: int, *, before_id: int, limit: int = 3) -> list[str]:
    """The last `limit` questions of a chat before the message `before_id`, oldest first."""
    found = session.scalars(
        select(Message.content)
        .join(Chat)
        .where(
            Message.chat_id == chat_id,
            Chat.user_id == user_id,
            Message.role == "user",
            Message.id < before_id,
        )
        .order_by(Message.id.desc())
        .limit(limit)
    )
    return list(found)[::-1]


def _owned(user_id: int, chat_id: int) -> ColumnElement[bool]:
    return (Chat.id == chat_id) & (Chat.user_id == user_id)


def _chat_row(chat: Chat) -> ChatRow:
    return ChatRow(
        id=chat.id,
        user_id=chat.user_id,
        title=chat.title,
        folder=chat.folder,
        pinned=chat.pinned,
        created_at=chat.created_at,
        updated_at=chat.updated_at,
        archived_at=chat.archived_at,
        collection_filter=tuple(chat.collection_filter) if chat.collection_filter else None,
    )


def _message_row(message: Message) -> MessageRow:
    return MessageRow(
        id=message.id,
        chat_id=message.chat_id,
        parent_id=message.parent_id,
        turn_id=message.turn_id,
        role=message.role,
        content=message.content,
        thinking=message.thinking,
        status=message.status,
        error_code=message.error_code,
        sources=tuple(message.sources),
        created_at=message.created_at,
    )
