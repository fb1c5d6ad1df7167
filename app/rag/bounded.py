"""Bounded requests of a turn besides that for its answer, and the lines a reader sees while they are made.

Owns how a note is asked for: without tools, without the loop guard, once more where it failed or held nothing, and cut
off where it grows past its share. What is asked is `app.rag.whole_prompts`', in which order `app.rag.map_reduce`'s.
"""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.rag.asking import Asking, closing
from app.rag.context import Prompt
from app.rag.errors import LLMError
from app.rag.pieces import ChatFn, Passage, StreamPiece
from app.rag.prompts import PastTurn, build_messages
from app.rag.turn import TurnStats
from app.rag.whole_texts import WholeTexts

NOTE_TOKENS = 900
"""A note at most, and never more than a fifth of the room: two fit into one request, whatever the window."""

_NOTE_SHARE = 5
_CHARS_PER_TOKEN = 3.5


class FixedPrompt(Prompt):
    """A prompt that can't be made smaller: what would be left out has been promised to be read."""

    def repack(self) -> bool:
        """Never."""
        return False


def fixed_prompt(messages: list[dict[str, str]], passages: Sequence[Passage], window: int, room: int) -> FixedPrompt:
    """A prompt of these messages that offers no tools."""

    def build(_passages: Sequence[Passage], _history: Sequence[PastTurn], _tools: bool) -> list[dict[str, str]]:
        return messages

    return FixedPrompt(
        messages, tuple(passages), window, room, tool_room=0, talk=0, _found=(), _history=(), _build=build
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the document is read for, and by whom: the question, the model, the turn's counts, and the reader's words.
    `address` is the document's as tools name it."""

    question: str
    address: str
    chat: ChatFn
    stats: TurnStats
    texts: WholeTexts
    window: int
    room: int

    @property
    def note_tokens(self) -> int:
        """What a note may take."""
        return min(NOTE_TOKENS, self.room // _NOTE_SHARE)

    def messages(self, system: str) -> list[dict[str, str]]:
        """A request about the question."""
        return build_messages(system, (), self.question)


class BoundedRequest:
    """One bounded request, once more where it failed or its reply held nothing. `text` is empty when both did, and
    `error` says why, where there was an error."""

    def __init__(self, asked: Asked, system: str, tokens: int) -> None:
        self.text = ""
        self.error: LLMError | None = None
        self._asked = asked
        self._system = system
        self._tokens = tokens

    async def run(self) -> AsyncGenerator[StreamPiece]:
        """Asks; yields what a reader has to know: that a try is repeated, that the model is loading."""
        correct = False
        for last in (False, True):
            self.error = None
            async with closing(self._ask(correct)) as pieces:
                async for piece in pieces:
                    yield piece
            if self.text:
                self._asked.stats.recovered = self._asked.stats.recovered or correct
                return
            correct = self.error is None
            if last or (self.error is not None and not self.error.retryable):
                return

    async def _ask(self, correct: bool) -> AsyncGenerator[StreamPiece]:
        asked = self._asked
        prompt = fixed_prompt(asked.messages(self._system), (), asked.window, asked.room)
        asking = Asking(prompt, asked.chat, asked.stats)
        said: list[str] = []
        used = 0.0
        try:
            async with closing(asking.request(None, correct=correct)) as pieces:
                async for piece in pieces:
                    if piece.kind == "content":
                        said.append(piece.text)
                        used += _weight(piece.text)
                        if used > self._tokens:
                            break
                    elif piece.kind in ("retry", "notice"):
                        yield piece
        except LLMError as error:
            self.error = error
            return
        self.text = _whole_lines("".join(said)) if used > self._tokens else "".join(said).strip()


def is_too_long(error: LLMError | None) -> bool:
    """Whether the server refused a prompt for its length."""
    return error is not None and error.code == "llm_rejected" and error.reason == "context"


def _whole_lines(text: str) -> str:
    """A text that was cut off, without the sentence it was cut off in."""
    end = max(text.rfind("\n"), text.rfind(". "), text.rfind("] "))
    return text[: end + 1].strip() if end > len(text) // 2 else text.strip()


def _weight(text: str) -> float:
    """Tokens of a piece of text as `context.estimate_tokens` has them, not rounded: pieces are words."""
    plain = len(text.encode("ascii", "ignore"))
    return plain / _CHARS_PER_TOKEN + len(text) - plain


@dataclass
class Step:
    """A line that the reader sees, as tool calls have it."""

    id: str
    name: str
    args: Mapping[str, Any]
    began: float = field(default_factory=time.perf_counter)

    def begins(self, summary: str) -> StreamPiece:
        """The line while it runs."""
        return self._piece("start", summary, 0, ())

    def ends(self, summary: str, *, ok: bool = True, sources: Sequence[Mapping[str, Any]] = ()) -> StreamPiece:
        """The line when it is done."""
        return self._piece("ok" if ok else "error", summary, round((time.perf_counter() - self.began) * 1000), sources)

    def _piece(self, status: str, summary: str, ms: int, sources: Sequence[Mapping[str, Any]]) -> StreamPiece:
        data = {"id": self.id, "name": self.name, "args": self.args, "status": status, "summary": summary, "ms": ms}
        return StreamPiece("tool", data={**data, "sources": list(sources)})
