"""Stand-ins for the model and the library: they say what a test's script says. They enter through `create_app`."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from app.rag.pieces import ChatFn, ChatMessages, ContentFilter, StreamPiece, ToolCallPiece
from app.search.hits import Hit, SearchFilters
from app.settings import Settings

Step = str | StreamPiece | ToolCallPiece | BaseException | Callable[[], Awaitable[None]]


class ScriptedModel:
    """A `chat_for`: each request plays the next script (the last one again and again).

    A step is text to say, a piece to yield, an error to raise, or something to wait for.
    """

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = list(scripts)
        self.requests: list[list[Mapping[str, Any]]] = []
        self.tools: list[Sequence[Mapping[str, Any]] | None] = []
        self.closed = 0

    def __call__(self, settings: Settings) -> ChatFn:
        return self._chat

    async def _chat(
        self,
        messages: ChatMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        content_filter: ContentFilter | None = None,
    ) -> AsyncGenerator[StreamPiece | ToolCallPiece]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(list(messages))
        self.tools.append(tools)
        try:
            for step in script:
                if isinstance(step, str):
                    yield StreamPiece("content", step)
                elif isinstance(step, StreamPiece | ToolCallPiece):
                    yield step
                elif isinstance(step, BaseException):
                    raise step
                else:
                    await step()
            yield usage()
        finally:
            self.closed += 1


def usage(finish_reason: str = "stop", prompt_tokens: int | None = 321) -> StreamPiece:
    data = {"prompt_tokens": prompt_tokens, "completion_tokens": 12, "finish_reason": finish_reason}
    return StreamPiece("usage", data=data)


class Gate:
    """Something a script waits for until the test opens it; `reached` tells that it got there."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._reached = asyncio.Event()

    async def __call__(self) -> None:
        self._reached.set()
        await self._open.wait()

    async def reached(self) -> None:
        await asyncio.wait_for(self._reached.wait(), 20)

    def open(self) -> None:
        self._open.set()


def hit(n: int = 1, *, score: float = 0.8, **changes: Any) -> Hit:
    """A passage about backups; `n` makes its ids and its path."""
    text = f"Backups of volume {n} are made every night at two. They are kept for thirty days."
    values: dict[str, Any] = {
        "chunk_id": 100 + n,
        "document_id": n,
        "collection_id": 1,
        "path": f"manual-{n}.md",
        "title": f"Manual {n}",
        "heading": "Backups › Schedule",
        "page": None,
        "text": text,
        "char_start": 40,
        "char_end": 40 + len(text),
        "line_start": 3,
        "line_end": 4,
        "score": score,
        "fulltext_rank": 1,
        "vector_rank": None,
    }
    return Hit(**{**values, **changes})


class ScriptedSearch:
    """A searcher that finds the same hits whatever is asked, and notes what was asked."""

    def __init__(self, *hits: Hit, error: Exception | None = None) -> None:
        self.hits = list(hits)
        self.error = error
        self.asked: list[tuple[str, int, int, SearchFilters]] = []

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        self.asked.append((query, user_id, k, filters))
        if self.error is not None:
            raise self.error
        return self.hits[:k]
