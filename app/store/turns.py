"""Turns from the database's side: begin, draft, settle, find.

Every function runs inside the caller's transaction. What each end of a turn means for the states is decided by
`app.turns.settle`; here are only the statements. Owner checks are in SQL.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, bindparam, select, update
from sqlalchemy.orm import Session, defer

from app.errors import ConflictError, NotFoundError
from app.store import chats
from app.store.models.chats import Chat, Message, Turn


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One question and its answer; `state` is running, done, error, stopped or interrupted."""

    id: str
    user_id: int
    chat_id: int | None
    client_key: str | None
    state: str
    started_at: datetime
    finished_at: datetime | None
    mode: str | None
    outcome: str | None
    error_code: str | None
    numbers: dict[str, Any] | None
    prompt: tuple[dict[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What a turn starts from. `chat_id` None makes a chat; `collections` None leaves the chat's filter as it is."""

    turn_id: str
    user_id: int
    chat_id: int | None
    client_key: str | None
    question: str
    now: datetime
    collections: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """Where a turn's rows are. `is_new` False: the client key was used before, this is that turn."""

    turn_id: str
    chat_id: int
    user_message_id: int
    message_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Prompted:
    """What a turn knows before the model says anything."""

    turn_id: str
    mode: str
    numbers: dict[str, Any]
    prompt: Sequence[Mapping[str, Any]]
    sources: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SettledTurn:
    """Everything the last transaction of a turn writes but the log of questions. `prompt` None: none was sent;
    `message_id` None: the turn belongs to no chat."""

    turn_id: str
    message_id: int | None
    state: str
    status: str
    outcome: str
    error_code: str | None
    content: str
    thinking: str
    sources: Sequence[Mapping[str, Any]]
    mode: str | None
    numbers: dict[str, Any]
    prompt: Sequence[Mapping[str, Any]] | None
    now: datetime


_messages = cast(Table, Message.__table__)
_SAVE_DRAFT = (
    update(_messages)
    .where(_messages.c.id == bindparam("message"), _messages.c.status == "streaming")
    .values(content=bindparam("text"), thinking=bindparam("thought"))
)
"""Executed for all drafts at once: a hundred of them must not hold up the streams they belong to."""


class ChatBusyError(ConflictError):
    """A turn of this chat is still running; `turn_id` names it."""

    default_code = "chat_busy"

    def __init__(self, turn_id: str) -> None:
        super().__init__(params={"turn_id": turn_id})
        self.turn_id = turn_id


def begin_turn(session: Session, new: NewTurn) -> BegunTurn:
    """Stores the question, an empty answer and the running turn, and the chat if it is new.

    A client key that was used before gives the turn of then and stores nothing. Two turns of one chat can't run at
    once: a partial unique index stands behind the check here.

    Raises:
        NotFoundError: `chat_not_found`.
        ChatBusyError: naming the running turn.
    """
    if new.client_key is not None:
        before = session.scalar(select(Turn).where(Turn.user_id == new.user_id, Turn.client_key == new.client_key))
        if before is not None:
            return _begun_before(session, before)
    if new.chat_id is None:
        chat_id = chats.create_chat(session, new.user_id, chats.title_of(new.question), new.now).id
    else:
        chat_id = chats.get_chat(session, new.user_id, new.chat_id).id
        running = running_turn(session, new.user_id, chat_id)
        if running is not None:
            raise ChatBusyError(running)
        session.execute(update(Chat).where(Chat.id == chat_id).values(updated_at=new.now))
    if new.collections is not None:
        chats.set_collection_filter(session, new.user_id, chat_id, new.collections)
    last = session.scalar(select(Message.id).where(Message.chat_id == chat_id).order_by(Message.id.desc()).limit(1))
    question = _message(new, chat_id, last, "user", "complete")
    session.add(question)
    session.flush()
    answer = _message(new, chat_id, question.id, "assistant", "streaming")
    turn = Turn(
        id=new.turn_id,
        user_id=new.user_id,
        chat_id=chat_id,
        client_key=new.client_key,
        state="running",
        started_at=new.now,
    )
    session.add_all([answer, turn])
    session.flush()
    return BegunTurn(new.turn_id, chat_id, question.id, answer.id, is_new=True)


def begin_lone_turn(session: Session, turn_id: str, user_id: int, now: datetime) -> None:
    """Stores a running turn that belongs to no chat: a question of another program's, which keeps the talk itself."""
    session.add(Turn(id=turn_id, user_id=user_id, chat_id=None, client_key=None, state="running", started_at=now))
    session.flush()


def get_turn(session: Session, user_id: int, turn_id: str) -> TurnRow:
    """One turn of the user's.

    Raises:
        NotFoundError: `turn_not_found`.
    """
    turn = session.scalar(select(Turn).where(Turn.id == turn_id, Turn.user_id == user_id))
    if turn is None:
        raise NotFoundError("turn_not_found")
    return _turn_row(turn)


def list_turns(session: Session, user_id: int, chat_id: int) -> list[TurnRow]:
    """The turns of a chat of the user's, oldest first, without the prompts they sent."""
    columns = select(Turn).where(Turn.chat_id == chat_id, Turn.user_id == user_id).options(defer(Turn.prompt))
    rows = session.scalars(columns.order_by(Turn.started_at, Turn.id))
    return [_turn_row(turn, with_prompt=False) for turn in rows]


def running_turn(session: Session, user_id: int, chat_id: int) -> str | None:
    """The id of the turn that runs in a chat of the user's, if one does."""
    return session.scalar(
        select(Turn.id).where(Turn.chat_id == chat_id, Turn.user_id == user_id, Turn.state == "running")
    )


def list_running(session: Session) -> list[TurnRow]:
    """Turns of all users that are marked running: after a start, the ones a kill left behind."""
    return [_turn_row(turn) for turn in session.scalars(select(Turn).where(Turn.state == "running"))]


def mark_prompted(session: Session, message_id: int, marked: Prompted) -> None:
    """Keeps what is known once retrieval is over, so that a kill leaves sources and receipt behind. A turn that is
    settled already stays as it is."""
    session.execute(
        update(Turn)
        .where(Turn.id == marked.turn_id, Turn.state == "running")
        .values(mode=marked.mode, numbers=marked.numbers, prompt=[dict(message) for message in marked.prompt])
    )
    session.execute(
        update(Message)
        .where(Message.id == message_id, Message.status == "streaming")
        .values(sources=[dict(source) for source in marked.sources])
    )


def save_drafts(session: Session, drafts: Iterable[tuple[int, str, str]]) -> None:
    """Writes `(message id, content, thinking)` of answers that are still streaming; a settled answer stays as it is."""
    rows = [{"message": message_id, "text": content, "thought": thinking} for message_id, content, thinking in drafts]
    if rows:
        session.connection().execute(_SAVE_DRAFT, rows)


def settle_turn(session: Session, settled: SettledTurn) -> bool:
    """Writes the final answer and the final state of its turn; whether it is still there: its chat may be removed."""
    if settled.message_id is not None:
        session.execute(
            update(Message)
            .where(Message.id == settled.message_id)
            .values(
                content=settled.content,
                thinking=settled.thinking,
                status=settled.status,
                error_code=settled.error_code,
                sources=[dict(source) for source in settled.sources],
            )
        )
    written = session.execute(
        update(Turn)
        .where(Turn.id == settled.turn_id)
        .values(
            state=settled.state,
            outcome=settled.outcome,
            error_code=settled.error_code,
            finished_at=settled.now,
            mode=settled.mode,
            numbers=settled.numbers,
            prompt=None if settled.prompt is None else [dict(message) for message in settled.prompt],
        )
        .returning(Turn.id)
    )
    return written.first() is not None


def interrupt_turn(session: Session, turn_id: str, now: datetime) -> None:
    """Marks a turn that a kill left running; its answer keeps the text it had."""
    session.execute(
        update(Turn)
        .where(Turn.id == turn_id)
        .values(state="interrupted", outcome="interrupted", error_code="interrupted", finished_at=now)
    )
    session.execute(
        update(Message)
        .where(Message.turn_id == turn_id, Message.status == "streaming")
        .values(status="interrupted", error_code="interrupted")
    )


def _begun_before(session: Session, turn: Turn) -> BegunTurn:
    found = session.execute(select(Message.role, Message.id).where(Message.turn_id == turn.id))
    ids = {row.role: row.id for row in found}
    assert turn.chat_id is not None
    return BegunTurn(turn.id, turn.chat_id, ids["user"], ids["assistant"], is_new=False)


def _message(new: NewTurn, chat_id: int, parent_id: int | None, role: chats.Role, status: str) -> Message:
    return Message(
        chat_id=chat_id,
        parent_id=parent_id,
        turn_id=new.turn_id,
        role=role,
        content=new.question if role == "user" else "",
        thinking="",
        status=status,
        sources=[],
        created_at=new.now,
    )


def _turn_row(turn: Turn, *, with_prompt: bool = True) -> TurnRow:
    return TurnRow(
        id=turn.id,
        user_id=turn.user_id,
        chat_id=turn.chat_id,
        client_key=turn.client_key,
        state=turn.state,
        started_at=turn.started_at,
        finished_at=turn.finished_at,
        mode=turn.mode,
        outcome=turn.outcome,
        error_code=turn.error_code,
        numbers=turn.numbers,
        prompt=tuple(turn.prompt) if with_prompt and turn.prompt is not None else None,
    )
