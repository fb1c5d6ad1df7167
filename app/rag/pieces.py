"""What the model client yields and what plugs into it: the vocabulary of a turn. Pure.

A *piece* is one event of a model's reply. `app.rag.llm` yields pieces, `app.rag.agent` passes them on,
`app.api.chat` turns them into frames.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

ChatMessages = Sequence[Mapping[str, Any]]
"""Messages in OpenAI's chat shape: `{"role": …, "content": …}`."""


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """One event of a reply.

    `content` and `thinking` carry `text`; `retry`, `tool`, `notice` and `usage` carry `data` (see docs/sse.md).
    """

    kind: Literal["content", "thinking", "retry", "tool", "notice", "usage"]
    text: str = ""
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """One native tool call of a reply; `arguments` is the raw JSON text."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Scaffolding that was removed: how much of it, and at most 200 characters to learn from."""

    pattern: str
    chars: int
    excerpt: str
    terminated: bool


class ContentFilter(Protocol):
    """A streaming transform of answer text: feed and flush."""

    stripped_chars: int
    """Characters removed over the whole request; survives `reset`."""

    def feed(self, text: str) -> str:
        """Takes a chunk, gives what may be shown now."""
        ...

    def flush(self) -> str:
        """Gives what was held at the end of the stream."""
        ...

    def reset(self) -> None:
        """Forgets held text; called between attempts of one request."""
        ...

    def drain_strips(self) -> list[Strip]:
        """What was removed since the last call."""
        ...


class ChatFn(Protocol):
    """A model as the agent sees it: `llm.chat_stream_retried` bound to an endpoint, or the built-in answerer."""

    def __call__(
        self,
        messages: ChatMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        content_filter: ContentFilter | None = None,
    ) -> AsyncIterator[StreamPiece | ToolCallPiece]:
        """Streams one reply.

        Raises:
            LLMError: when the reply cannot be had, or broke off.
        """
        ...


@dataclass(frozen=True, slots=True)
class DocRef:
    """A document the agent read."""

    document_id: int
    path: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A numbered passage as given to the model: `n` is what the answer cites."""

    n: int
    document_id: int
    chunk_id: int
    path: str
    title: str
    heading: str
    page: int | None
    text: str
    char_start: int
    char_end: int
    line_start: int
    line_end: int
    score: float


def storable(text: str) -> str:
    """`text` with what is no Unicode character (a lone surrogate) replaced: no row, request or page can hold one, and
    the stream and the row have to be equal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
