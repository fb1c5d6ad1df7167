"""Packs what was found into the model's window: which passages fit, how much of the history, and what to do without.

Owns the order of giving way: the oldest turns first, then the lowest-ranked passages. The words of a prompt are
`app.rag.prompts`', the room it has `app.rag.space`'s. Called by `app.api.run_turn`; the agent calls `Prompt.repack`
when the server says that the prompt was too long all the same.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.rag.markers import strip_markers
from app.rag.merging import merged
from app.rag.pieces import Passage
from app.rag.prompts import (
    PastTurn,
    build_deflect_prompt,
    build_grounded_prompt,
    build_messages,
    build_without_documents_prompt,
    passage_block,
)
from app.rag.space import Space
from app.rag.tokens import estimate_tokens
from app.rag.tool_calls import Tools
from app.rag.turn import Mode
from app.search.hits import Hit

_MESSAGE_TOKENS = 4
_HISTORY_SHARE = 1 / 3
_TOOL_SHARE = 1 / 3
_TOOL_ROOM_MIN = 600
"""Tokens; tools whose results could not hold half a page are not worth offering."""

_Build = Callable[[Sequence[Passage], Sequence[PastTurn], bool], list[dict[str, str]]]


class Retrieved(Protocol):
    """What packing reads of a `gate.Gate`."""

    @property
    def mode(self) -> Mode:
        """Grounded or deflected."""
        ...

    @property
    def hits(self) -> Sequence[Hit]:
        """The passages in rank order."""
        ...

    @property
    def searched(self) -> str:
        """Empty when nothing was searched."""
        ...


@dataclass(slots=True)
class Prompt:
    """A prompt that fits. `passages` are those given, numbered from 1, neighbours as one; of `window` tokens the prompt
    may take `room`, the rest is the answer's. `tool_room` is how many tokens tool results may add; 0 where no tools are
    to be offered."""

    messages: list[dict[str, str]]
    passages: tuple[Passage, ...]
    window: int
    room: int
    tool_room: int
    talk: int
    """How many answered turns the chat had before this one."""
    _found: tuple[Passage, ...] = field(repr=False)
    _history: tuple[PastTurn, ...] = field(repr=False)
    _build: _Build = field(repr=False)
    rounds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Messages that tool rounds added: replies with their calls, and the results."""
    _repacked: bool = field(default=False, repr=False)

    @property
    def left_out(self) -> tuple[Passage, ...]:
        """What was found and is in none of the passages given, as it was found: before neighbours became one."""
        return tuple(one for one in self._found if not any(_holds(passage, one) for passage in self.passages))

    @property
    def dropped(self) -> int:
        """How many of the passages found did not fit."""
        return len(self.left_out)

    @property
    def found(self) -> int:
        """How many passages were found; those given as one with a neighbour count each."""
        return len(self._found)

    @property
    def talk_given(self) -> int:
        """How many of the chat's answered turns are given: the last ones."""
        return len(self._history)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """What the next request sends."""
        return [*self.messages, *self.rounds]

    def repack(self) -> bool:
        """Halves the passages and the history, once; numbers stay what they were. False when nothing is left to give
        up, or it was done before."""
        passages = self.passages[: math.ceil(len(self.passages) / 2)]
        history = self._history[math.ceil(len(self._history) / 2) :]
        if self._repacked or (len(passages) == len(self.passages) and len(history) == len(self._history)):
            return False
        self._repacked = True
        self.passages, self._history = passages, history
        self.messages = self._build(passages, history, self.tool_room > 0)
        return True

    def drop_tools(self) -> None:
        """Takes the tools out of what the model is told: they can't be offered."""
        self.tool_room = 0
        self.messages = self._build(self.passages, self._history, False)


def pack(
    gate: Retrieved,
    question: str,
    history: Sequence[PastTurn],
    space: Space,
    *,
    documents: int,
    tools: Tools = (),
) -> Prompt:
    """The prompt of a turn in the room that `space` has for it (`space.space_of`).

    The rules and the question come first; history (oldest first, whole turns; answers without their markers) gives way
    until it takes at most a third of what is left; passages fill the rest in rank order up to the first that does not
    fit; those that follow each other in a document are given as one. The best is always given.

    Args:
        history: The chat's answered turns, oldest first; turns without an answer are left out.
        documents: How many documents were searched; a deflecting prompt says so.
        tools: What may be offered to a grounded turn: definitions and results get a third of the room, unless that is
            too little to be of use.
    """
    room = space.estimated
    build = _builder(gate, question, documents)
    defined = estimate_tokens(json.dumps(tools)) if tools else 0
    reserved = round(room * _TOOL_SHARE)
    offered = gate.mode == "grounded" and defined > 0 and reserved - defined >= _TOOL_ROOM_MIN
    left = room - _tokens_of(build((), (), offered)) - (reserved if offered else 0)
    talk = [PastTurn(turn.question, strip_markers(turn.answer)) for turn in history if turn.answer.strip()]
    past = _fitting_history(talk, round(left * _HISTORY_SHARE))
    left -= _tokens_of(build((), past, offered)) - _tokens_of(build((), (), offered))
    found = passages_of(gate.hits)
    _, passages = fit(found, left)
    messages = build(passages, past, offered)
    tool_room = max(_TOOL_ROOM_MIN, room - defined - _tokens_of(messages)) if offered else 0
    return Prompt(messages, passages, space.window, space.room, tool_room, len(talk), found, past, build)


def passages_of(hits: Sequence[Hit]) -> tuple[Passage, ...]:
    """Hits as passages, numbered from 1 in their order."""
    return tuple(
        Passage(
            n=n,
            document_id=hit.document_id,
            chunk_id=hit.chunk_id,
            path=hit.path,
            title=hit.title,
            heading=hit.heading,
            page=hit.page,
            text=hit.text,
            char_start=hit.char_start,
            char_end=hit.char_end,
            line_start=hit.line_start,
            line_end=hit.line_end,
            score=hit.score,
        )
        for n, hit in enumerate(hits, 1)
    )


def fit(
    found: Sequence[Passage], room: int, count_tokens: Callable[[str], int] | None = None
) -> tuple[int, tuple[Passage, ...]]:
    """How many of `found`, in order, fit into `room` tokens, and these with neighbours as one; always one at least."""
    size = count_tokens or estimate_tokens
    taken, passages = min(1, len(found)), merged(found[:1])
    for count in range(1, len(found) + 1):
        together = merged(found[:count])
        if sum(size(passage_block(passage)) + 1 for passage in together) > room:
            break
        taken, passages = count, together
    return taken, passages


def _builder(gate: Retrieved, question: str, documents: int) -> _Build:
    def build(passages: Sequence[Passage], history: Sequence[PastTurn], tools: bool) -> list[dict[str, str]]:
        if gate.mode == "grounded":
            system = build_grounded_prompt(passages, tools=tools)
        elif gate.searched:
            system = build_deflect_prompt(documents=documents)
        else:
            system = build_without_documents_prompt()
        return build_messages(system, history, question)

    return build


def _fitting_history(talk: Sequence[PastTurn], room: int) -> tuple[PastTurn, ...]:
    kept: list[PastTurn] = []
    for turn in reversed(talk):
        room -= estimate_tokens(turn.question) + estimate_tokens(turn.answer) + 2 * _MESSAGE_TOKENS
        if room < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def _holds(passage: Passage, one: Passage) -> bool:
    """Whether `one` is a part of `passage`."""
    within = passage.char_start <= one.char_start and one.char_end <= passage.char_end
    return passage.document_id == one.document_id and within


def _tokens_of(messages: Sequence[dict[str, str]]) -> int:
    return sum(estimate_tokens(message["content"]) + _MESSAGE_TOKENS for message in messages)
