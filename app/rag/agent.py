"""One turn with the model: asks, passes on what it says, judges whether that is an answer, asks once more if not.

Owns the order of requests and their count; what a reply is made of is `app.rag.llm`'s, what becomes of the pieces
`app.api.chat`'s. Called once per turn, grounded or deflected.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from app.rag.context import Prompt
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.pieces import ChatFn, ChatMessages, DocRef, StreamPiece, ToolCallPiece
from app.rag.prompts import with_correction
from app.rag.scaffolding import ScaffoldingFilter
from app.rag.turn import TurnStats

_T = TypeVar("_T")
Tools = Sequence[Mapping[str, Any]]


class Toolbox(Protocol):
    """The read-only tools of a grounded turn."""

    max_rounds: int
    """How many requests may offer tools."""


class Guard(Protocol):
    """Watches the rounds of a turn for repetition."""


@dataclass
class AgentHolder:
    """What the turn did with documents besides the passages it was given."""

    read_docs: list[DocRef] = field(default_factory=list[DocRef])
    tool_calls: int = 0


async def run_agent(
    prompt: Prompt,
    holder: AgentHolder,
    *,
    chat: ChatFn,
    toolbox: Toolbox | None,
    stats: TurnStats,
    guard: Guard | None,
) -> AsyncGenerator[StreamPiece]:
    """Yields content, thinking, retry and notice pieces of the answer; usage goes into `stats`, as do requests
    (`rounds`) and retries.

    With `toolbox=None` requests offer no tools, and native tool calls in a reply are neither run nor shown. Leaked
    tool syntax is filtered from the content (`scaffold_stripped`). A reply without visible text is asked for once more,
    the correction line in the system message; at most once a turn. White space is held until the first visible
    character. When the server says that the prompt is too long, it is repacked and asked once more (notice
    `context_trimmed`).

    Raises:
        MalformedReplyError: when the second reply holds no visible text either.
        LLMError: when the reply cannot be had, or broke off.
    """
    reply = _Reply(stats)
    async with _closing(_request(prompt, reply, chat=chat, tools=None)) as pieces:
        async for piece in pieces:
            yield piece
    if reply.visible:
        return
    async with _closing(_request(prompt, reply, chat=chat, tools=None, correct=True)) as pieces:
        async for piece in pieces:
            yield piece
    if not reply.visible:
        raise MalformedReplyError
    stats.recovered = True


async def _request(
    prompt: Prompt, reply: "_Reply", *, chat: ChatFn, tools: Tools | None, correct: bool = False
) -> AsyncGenerator[StreamPiece]:
    """One reply; a second request after a context overflow, with fewer passages."""
    while True:
        try:
            messages = with_correction(prompt.messages) if correct else prompt.messages
            async with _closing(_ask(messages, reply, chat=chat, tools=tools)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except LLMError as error:
            if error.code != "context_overflow":
                raise
            if reply.visible or not prompt.repack():
                raise _too_long(error) from error
        yield StreamPiece("notice", data={"code": "context_trimmed"})


def _too_long(error: LLMError) -> LLMError:
    return LLMError(
        "llm_rejected",
        reason="context",
        provider_status=error.provider_status,
        retryable=False,
        setting="LLM_CONTEXT_TOKENS",
        params=error.params,
    )


async def _ask(
    messages: ChatMessages, reply: "_Reply", *, chat: ChatFn, tools: Tools | None
) -> AsyncGenerator[StreamPiece]:
    """One request with a filter of its own; what that removed is counted however the request ends."""
    reply.begin()
    content_filter = ScaffoldingFilter()
    try:
        async with _closing(chat(messages, tools=tools, content_filter=content_filter)) as pieces:
            async for piece in pieces:
                if (shown := reply.take(piece)) is not None:
                    yield shown
    finally:
        reply.count_stripped(content_filter.stripped_chars)


class _Reply:
    """The state of one reply: has anything visible come, and what was held back before it."""

    def __init__(self, stats: TurnStats) -> None:
        self._stats = stats
        self._held = ""
        self.visible = False

    def begin(self) -> None:
        self._stats.rounds += 1
        self._held, self.visible = "", False

    def take(self, piece: StreamPiece | ToolCallPiece) -> StreamPiece | None:
        """The piece to pass on, if any."""
        if isinstance(piece, ToolCallPiece):
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

    def count_stripped(self, chars: int) -> None:
        self._stats.scaffold_stripped += chars

    def _content(self, text: str) -> StreamPiece | None:
        if not self.visible:
            self._held += text
            if not self._held.strip():
                return None
            text, self._held, self.visible = self._held, "", True
        return StreamPiece("content", text) if text else None

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """The prompt of the last request is the turn's; completions add up."""
        stats = self._stats
        if usage.get("prompt_tokens") is not None:
            stats.prompt_tokens = usage["prompt_tokens"]
        if usage.get("completion_tokens") is not None:
            stats.completion_tokens = (stats.completion_tokens or 0) + usage["completion_tokens"]
        if usage.get("finish_reason") is not None:
            stats.finish_reason = usage["finish_reason"]


@asynccontextmanager
async def _closing(stream: AsyncIterator[_T]) -> AsyncGenerator[AsyncIterator[_T]]:
    """`contextlib.aclosing` for a stream that is an async generator in fact but not by its type."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
