"""One request of a turn and the state of its reply; once more with fewer passages when the prompt was too long.

Owns a fresh filter for every request, the blank line between the texts of two rounds, and what is counted per request.
Which request is made, and what an empty reply means, is `app.rag.agent`'s.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from app.guard.turn_guard import Decision
from app.rag.context import Prompt
from app.rag.errors import LLMError
from app.rag.pieces import ChatFn, StreamPiece, ToolCallPiece
from app.rag.prompts import with_correction
from app.rag.scaffolding import ScaffoldingFilter
from app.rag.tokens import Reading
from app.rag.tool_calls import Tools
from app.rag.turn import TurnStats

_T = TypeVar("_T")


class Watch(Protocol):
    """The part of the loop guard that sees every reply."""

    def begin_reply(self) -> None:
        """A new generation begins."""
        ...

    def feed(self, text: str) -> Decision:
        """Takes visible text as it streams; `abort` once it has run away."""
        ...

    def record_text(self, text: str, made_calls: bool) -> Decision:
        """Judges what a reply said once it is complete."""
        ...


class Asking:
    """The requests of one turn; `reply` is that to the last one."""

    def __init__(self, prompt: Prompt, chat: ChatFn, stats: TurnStats, watch: Watch | None = None) -> None:
        self.prompt = prompt
        self._watch = watch
        self.reply = Reply(stats)
        self._chat = chat

    async def request(self, tools: Tools | None, *, correct: bool = False) -> AsyncGenerator[StreamPiece]:
        """Yields one reply's pieces; after a context overflow those of a second request, with fewer passages.

        Raises:
            LLMError: when the reply cannot be had, or broke off.
        """
        while True:
            try:
                async with closing(self._ask(tools, correct)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except LLMError as error:
                if error.code != "context_overflow":
                    raise
                if self.reply.visible or not self.prompt.repack():
                    raise _too_long(error) from error
            yield StreamPiece("notice", data={"code": "context_trimmed"})

    async def _ask(self, tools: Tools | None, correct: bool) -> AsyncGenerator[StreamPiece]:
        messages = with_correction(self.prompt.sent) if correct else self.prompt.sent
        self.reply.begin()
        if self._watch is not None:
            self._watch.begin_reply()
        content_filter = ScaffoldingFilter()
        try:
            async with closing(self._chat(messages, tools=tools, content_filter=content_filter)) as pieces:
                async for piece in pieces:
                    if (shown := self.reply.take(piece)) is not None:
                        yield shown
                        self._watched(shown)
            self.reply.was_answer_to(messages, tools or ())
            if self._watch is not None:
                self._watch.record_text(self.reply.text, bool(self.reply.calls))
        finally:
            self.reply.count_stripped(content_filter.stripped_chars)

    def _watched(self, shown: StreamPiece) -> None:
        """Ends a reply that repeats itself without end; what it said is kept."""
        if self._watch is not None and shown.kind == "content" and self._watch.feed(shown.text).action == "abort":
            raise LLMError("loop_guard")


class Reply:
    """The state of one reply: its visible text, its native calls, and what is held back before the first character."""

    def __init__(self, stats: TurnStats) -> None:
        self._stats = stats
        self._held: list[str] = []
        self._said_before = False
        self._parts: list[str] = []
        self._prompt_tokens: int | None = None
        self.calls: list[ToolCallPiece] = []

    @property
    def visible(self) -> bool:
        """Whether this reply has shown anything."""
        return bool(self._parts)

    @property
    def text(self) -> str:
        """The visible text of this reply alone."""
        return "".join(self._parts)

    def begin(self) -> None:
        """Another request is made."""
        self._stats.rounds += 1
        self._said_before = self._said_before or self.visible
        self._held, self._parts, self.calls = [], [], []
        self._prompt_tokens = None

    def take(self, piece: StreamPiece | ToolCallPiece) -> StreamPiece | None:
        """The piece to pass on, if any."""
        if isinstance(piece, ToolCallPiece):
            self.calls.append(piece)
            return None
        match piece.kind:
            case "content":
                return self._content(piece.text)
            case "usage":
                self._usage(piece.data or {})
                return None
            case "thinking":
                return piece if piece.text else None
            case "retry":
                self._stats.retries += 1
                return piece
            case "notice" | "tool":
                return piece

    def was_answer_to(self, messages: Sequence[Mapping[str, Any]], tools: Tools) -> None:
        """The reply is complete: keeps what it answered with the tokens that were counted for it."""
        self._stats.readings.append(Reading(messages, tools, self._prompt_tokens))

    def count_stripped(self, chars: int) -> None:
        """Adds what the request's filter removed."""
        self._stats.scaffold_stripped += chars

    def _content(self, text: str) -> StreamPiece | None:
        if self.visible:
            self._parts.append(text)
            return StreamPiece("content", text) if text else None
        # A list: a model that sends blanks without end would make this quadratic.
        self._held.append(text)
        if not text.strip():
            return None
        text, self._held = "".join(self._held), []
        self._parts.append(text)
        return StreamPiece("content", f"\n\n{text}" if self._said_before else text)

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """The prompt of the last request is the turn's; completions add up."""
        stats = self._stats
        if usage.get("prompt_tokens") is not None:
            stats.prompt_tokens = self._prompt_tokens = usage["prompt_tokens"]
        if usage.get("completion_tokens") is not None:
            stats.completion_tokens = (stats.completion_tokens or 0) + usage["completion_tokens"]
        if usage.get("finish_reason") is not None:
            stats.finish_reason = usage["finish_reason"]


@asynccontextmanager
async def closing(stream: AsyncIterator[_T]) -> AsyncGenerator[AsyncIterator[_T]]:
    """`contextlib.aclosing` for a stream that is an async generator in fact but not by its type."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _too_long(error: LLMError) -> LLMError:
    return LLMError(
        "llm_rejected",
        reason="context",
        provider_status=error.provider_status,
        retryable=False,
        setting="LLM_CONTEXT_TOKENS",
        params=error.params,
    )
