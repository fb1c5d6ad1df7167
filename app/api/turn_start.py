"""What a turn reads from the database before it begins, and the facts its receipt keeps beside the log line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from app.api.asked import Asked, read_asked
from app.api.frames import TurnIds
from app.rag.citations import source_rows
from app.rag.context import Prompt
from app.rag.gate import Gate
from app.rag.prompts import PastTurn
from app.rag.tokens import estimate_tokens
from app.search.hits import SearchFilters
from app.settings import Settings
from app.store import chats
from app.store.engine import Session
from app.store.scope import Scope
from app.store.settings import effective
from app.store.tool_reads import count_searchable

BUILTIN_MODEL = "builtin"
"""`model` of the answerer that quotes and needs none."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What was asked, by whom, where to look, and where the turn's rows are."""

    ids: TurnIds
    user_id: int
    question: str
    filters: SearchFilters
    without_documents: bool
    history: tuple[PastTurn, ...] | None = None
    """The talk before the question where no chat holds it; None: it is read from the chat."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """The turn's snapshot: settings, and what is asked of what."""

    settings: Settings
    asked: Asked

    @property
    def history(self) -> tuple[PastTurn, ...]:
        """Earlier turns of the chat, oldest first, as the model reads them."""
        return self.asked.history

    @property
    def model(self) -> str | None:
        """The model as configured; None while it is the server's first."""
        return self.settings.llm_model if self.settings.llm_base_url else BUILTIN_MODEL


def read_start(session: Session, settings: Settings, request: TurnRequest, today: date) -> TurnStart:
    """Reads the snapshot in one transaction; a turn without documents is asked of nothing, whatever it names."""
    history = _history(session, request)
    asked = read_asked(session, request.user_id, request.question, request.filters, history, today)
    if request.without_documents:
        asked = replace(asked, chips=(), named_documents=(), remarks=())
    return TurnStart(effective(session, settings), asked)


def _history(session: Session, asked: TurnRequest) -> tuple[PastTurn, ...]:
    if asked.history is not None or asked.ids.chat_id is None or asked.ids.user_message_id is None:
        return asked.history or ()
    before = asked.ids.user_message_id
    return past_turns(chats.earlier_messages(session, asked.user_id, asked.ids.chat_id, before_id=before))


def past_turns(messages: Sequence[chats.MessageRow]) -> tuple[PastTurn, ...]:
    """Messages in order as questions with their answers, also half ones; a question without any answer is left out."""
    asked: dict[str, str] = {message.turn_id: message.content for message in messages if message.role == "user"}
    return tuple(
        PastTurn(asked[message.turn_id], message.content)
        for message in messages
        if message.role == "assistant" and message.turn_id in asked
    )


def facts_of(gate: Gate, prompt: Prompt, settings: Settings) -> Mapping[str, Any]:
    """What the receipt shows beside the numbers: the query as searched, how many of the passages found fit (`taken`)
    and as how many they were given, the threshold, what did not fit, how many of the chat's turns did, the prompt's
    size as estimated, the room it had and the window (tokens)."""
    return {
        "searched": gate.searched,
        "given": len(prompt.passages),
        "taken": prompt.found - prompt.dropped,
        "min_score": settings.retrieval_min_score,
        "dropped": [{**row, "why": "budget"} for row in source_rows(prompt.left_out, None)],
        "talk": prompt.talk,
        "talk_given": prompt.talk_given,
        "estimated_tokens": sum(estimate_tokens(message["content"]) for message in prompt.sent),
        "prompt_room": prompt.room,
        "window": prompt.window,
    }


def count_searched(session: Session, user_id: int, filters: SearchFilters) -> int:
    """How many documents the question was looked for in; what the deflecting prompt says."""
    return count_searchable(session, Scope(user_id, filters))
