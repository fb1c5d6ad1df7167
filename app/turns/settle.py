"""How a turn ends in the database: one transaction per outcome, and the sweep at start.

Owns the table "end → states" and the drafts that are written while an answer streams. `app.api.run_turn` decides which
end it was; the statements are `app.store.turns`. Knows of the answering side only `rag.turn`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from app.logs import kv
from app.rag.turn import Outcome, TurnStats
from app.store import chats, queries, turns
from app.store.engine import Database, Session

T = TypeVar("T")
End = Literal["answer", "malformed", "failed", "stopped", "interrupted"]

_STATES: Mapping[End, tuple[str, str, Outcome]] = {
    "answer": ("done", "complete", "ok"),
    "malformed": ("error", "error", "malformed"),
    "failed": ("error", "error", "error"),
    "stopped": ("stopped", "stopped", "stopped"),
    "interrupted": ("interrupted", "interrupted", "interrupted"),
}
"""End → turns.state, messages.status, outcome."""

_KNOWN_AFTER_A_KILL = frozenset({"turn", "chat", "user", "mode", "outcome", "thinking_chars", "answer_chars"})
_KNOWN_ONCE_PROMPTED = frozenset({"model", "top_score", "chunks", "retrieval_ms"})

_log = logging.getLogger("app.chat")


@dataclass
class Draft:
    """An answer as it grows: what the drafts and the last transaction write.

    `facts` are numbers beside those of the log line, for the receipt. `prompted` is set once retrieval is over. Without
    `message_id` the turn belongs to no chat, and its text is stored nowhere.
    """

    message_id: int | None
    content: str = ""
    thinking: str = ""
    sources: Sequence[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    prompt: Sequence[Mapping[str, Any]] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompted: turns.Prompted | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended. `query` is given for an `answer` only: nothing else was answered."""

    end: End
    error_code: str | None = None
    query: queries.QueryRow | None = None


def settle(session: Session, ending: Ending, stats: TurnStats, draft: Draft, *, now: datetime) -> None:
    """Writes the end of a turn: the answer with the text it has, the turn's state and numbers, and for an `answer` the
    row of the log of questions, unless its chat was removed meanwhile. Sets `stats.outcome`."""
    state, status, outcome = _STATES[ending.end]
    stats.outcome = outcome
    is_there = turns.settle_turn(
        session,
        turns.SettledTurn(
            turn_id=stats.turn,
            message_id=draft.message_id,
            state=state,
            status=status,
            outcome=outcome,
            error_code=ending.error_code,
            content=draft.content,
            thinking=draft.thinking,
            sources=draft.sources,
            mode=stats.mode,
            numbers={**stats.numbers(), **draft.facts},
            prompt=draft.prompt,
            now=now,
        ),
    )
    if ending.query is not None and is_there:
        queries.add_query(session, ending.query)


def query_row(
    stats: TurnStats, draft: Draft, question: str, read_docs: list[int], *, now: datetime, mode: str
) -> queries.QueryRow:
    """The log-of-questions row of a finished turn."""
    return queries.QueryRow(
        created_at=now,
        user_id=stats.user,
        chat_id=stats.chat,
        message_id=draft.message_id,
        question=question,
        mode=mode,
        top_score=stats.top_score,
        chunk_ids=stats.chunk_ids,
        read_docs=read_docs,
        tool_calls=stats.tool_calls,
        rounds=stats.rounds,
        model=(stats.model or "")[:256],
        thinking_chars=stats.thinking_chars,
        answer_chars=stats.answer_chars,
        first_ms=stats.first_ms,
        total_ms=stats.total_ms,
        retries=stats.retries,
        scaffold_stripped=stats.scaffold_stripped,
        recovered=stats.recovered,
    )


async def through(work: Awaitable[T]) -> T:
    """Awaits `work` to its end although the task is cancelled meanwhile: settling is never half done.

    A cancellation that comes here is used up: by then the end of the turn is decided.
    """
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise


def sweep(session: Session, now: datetime) -> list[str]:
    """Marks the turns a kill left running as interrupted, with the text they had, and gives their log lines."""
    lines: list[str] = []
    for turn in turns.list_running(session):
        answer = chats.answer_of(session, turn.user_id, turn.id)
        turns.interrupt_turn(session, turn.id, now)
        lines.append(_line_of(turn, answer))
    return lines


def sweep_at_start(database: Database, now: datetime) -> None:
    """`sweep` in its own transaction; logs one line per turn found."""
    for line in database.write(lambda session: sweep(session, now)):
        _log.info("%s", line)


def _line_of(turn: turns.TurnRow, answer: chats.MessageRow | None) -> str:
    """The per-turn line of a turn nobody saw end: what the rows tell, `-` for the rest."""
    numbers = turn.numbers or {}
    known = _KNOWN_AFTER_A_KILL | _KNOWN_ONCE_PROMPTED if numbers else _KNOWN_AFTER_A_KILL
    stats = TurnStats(turn=turn.id, chat=turn.chat_id, user=turn.user_id, outcome="interrupted")
    fields = stats.line_fields() | {key: numbers[key] for key in _KNOWN_ONCE_PROMPTED & numbers.keys()}
    fields["mode"] = turn.mode
    if answer is not None:
        fields |= {"answer_chars": len(answer.content), "thinking_chars": len(answer.thinking)}
    return kv("chat_turn", **{key: value if key in known else None for key, value in fields.items()})
