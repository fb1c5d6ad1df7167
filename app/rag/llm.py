"""The model client: one chat request as a stream of pieces, with retries before the first piece.

Owns what a request holds, the content filter's place in the stream and the loading notice. Whether a request is made
again is `app.rag.retries`', bytes and clocks are `app.rag.reply`'s and `app.rag.sse_reader`'s; rounds, tools and the
judging of replies belong to `app.rag.agent`. `app.main` binds `chat_for_endpoint`, once per turn.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from app.rag.errors import LLMError
from app.rag.pieces import ChatFn, ChatMessages, ContentFilter, StreamPiece, ToolCallPiece
from app.rag.prompts import Rearming
from app.rag.reply import Attempt, ReplyError
from app.rag.retries import Tries
from app.rag.sse_reader import ProviderEvent, Text, Thinking
from app.rag.strip_log import StripLog
from app.rag.think_tags import Kind, ThinkRouter
from app.upstream.client import ClientPool, Endpoint

Piece = StreamPiece | ToolCallPiece


def chat_for_endpoint(endpoint: Endpoint, clients: ClientPool) -> ChatFn:
    """The model of one turn. The turn's total clock starts here."""
    deadline = clients.clock.monotonic() + endpoint.total_s

    def chat(
        messages: ChatMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        content_filter: ContentFilter | None = None,
    ) -> AsyncIterator[Piece]:
        return chat_stream_retried(
            endpoint, messages, tools=tools, content_filter=content_filter, clients=clients, deadline=deadline
        )

    return chat


async def chat_stream_retried(
    endpoint: Endpoint,
    messages: ChatMessages,
    *,
    tools: Sequence[Mapping[str, Any]] | None,
    content_filter: ContentFilter | None = None,
    clients: ClientPool | None = None,
    deadline: float | None = None,
) -> AsyncGenerator[Piece, None]:
    """`chat_stream`, tried again up to `endpoint.retry_max` times while nothing has been yielded.

    Yields besides: a `retry` piece `{attempt, max, delay_ms, reason}` before each wait. A server that failed five
    requests in a row is not asked for half a minute, and then by one request at a time, until one is answered.

    Raises:
        LLMError: as `chat_stream` does, after the last try; `llm_unavailable` with the reason `circuit` or
            `circuit_probe` when the server is being left alone.
    """
    noticed = False
    async with _pool(clients) as pool:
        with Tries(pool, endpoint) as tries:
            while True:
                tries.begin()
                try:
                    stream = chat_stream(
                        endpoint, messages, tools=tools, content_filter=content_filter, clients=pool, deadline=deadline
                    )
                    async with aclosing(stream) as pieces:
                        async for piece in pieces:
                            if not (isinstance(piece, StreamPiece) and piece.kind == "notice"):
                                tries.answered()
                            elif noticed:
                                continue
                            noticed = noticed or not tries.begun
                            yield piece
                    return
                except ReplyError as error:
                    retry = tries.failed(error.failure)
                    if retry is None:
                        raise
                if content_filter is not None:
                    content_filter.reset()
                yield StreamPiece("retry", data=retry.data())
                left = retry.delay_s if deadline is None else min(retry.delay_s, deadline - pool.clock.monotonic())
                await asyncio.sleep(max(0.0, left))


async def chat_stream(
    endpoint: Endpoint,
    messages: ChatMessages,
    *,
    tools: Sequence[Mapping[str, Any]] | None,
    content_filter: ContentFilter | None = None,
    clients: ClientPool | None = None,
    deadline: float | None = None,
) -> AsyncGenerator[Piece, None]:
    """One request, streamed: content and thinking as they come, then tool calls by index, then one `usage` piece.

    A `notice` `model_loading` comes once, when no token has come for `endpoint.loading_notice_s`. Without a filter the
    content is what the server sent; with one, text passes through it and a leading `<think>` block becomes thinking.
    `clients` None makes a client for this request alone. `deadline` is the total clock's end by the pool's clock.
    The endpoint's stream is closed on every exit.

    Raises:
        LLMError: when the reply cannot be had or breaks off; what was yielded before stands. `tools_unsupported` when
            the server refuses the request because of its `tools`, which the pool remembers.
    """
    async with _pool(clients) as pool, _noting_refused_tools(pool, endpoint):
        attempt = Attempt(pool, endpoint, _request(endpoint, messages, tools), deadline)
        async with (
            aclosing(_pieces(attempt, _TextPath(content_filter))) as pieces,
            aclosing(_with_loading_notice(pieces, attempt.asked, endpoint.loading_notice_s)) as noticed,
        ):
            async for piece in noticed:
                yield piece


@asynccontextmanager
async def _pool(clients: ClientPool | None) -> AsyncGenerator[ClientPool, None]:
    if clients is not None:
        yield clients
        return
    own = ClientPool()
    try:
        yield own
    finally:
        await own.aclose()


@asynccontextmanager
async def _noting_refused_tools(pool: ClientPool, endpoint: Endpoint) -> AsyncGenerator[None, None]:
    try:
        yield
    except LLMError as error:
        if error.code == "tools_unsupported":
            pool.mark_toolless(endpoint)
        raise


def _request(endpoint: Endpoint, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The request's fields; what is not set is left to the server."""
    request: dict[str, Any] = {"messages": [dict(message) for message in messages]}
    if tools:
        request["tools"] = [dict(tool) for tool in tools]
    if endpoint.temperature is not None:
        request["temperature"] = endpoint.temperature
    if endpoint.max_tokens is not None:
        request["max_tokens"] = endpoint.max_tokens
    return request


async def _pieces(attempt: Attempt, text: "_TextPath") -> AsyncGenerator[Piece, None]:
    begun = False
    broken: LLMError | None = None
    try:
        async with aclosing(attempt.events()) as batches:
            async for batch in batches:
                for event in batch:
                    for piece in text.pieces(event):
                        begun = True
                        yield piece
    except ReplyError as error:
        if not begun:
            raise
        broken = attempt.incomplete() if error.code == "llm_unavailable" else error
    for piece in text.tail():
        yield piece
    if broken or not attempt.reader.complete:
        raise broken or attempt.incomplete()
    for call in attempt.reader.tool_calls():
        yield call
    yield _usage_piece(attempt)


class _TextPath:
    """Events → content and thinking pieces, through the filter where one is given. Logs what the filter removed.

    Where there is a filter, what the prompt made inert and the model copied is made whole before it."""

    def __init__(self, content_filter: ContentFilter | None) -> None:
        self._filter = content_filter
        self._rearming = Rearming()
        self._router = ThinkRouter()
        self._strips = StripLog()

    def pieces(self, event: ProviderEvent) -> Iterator[StreamPiece]:
        if isinstance(event, Thinking):
            yield StreamPiece("thinking", event.text)
        elif isinstance(event, Text):
            if self._filter is None:
                yield StreamPiece("content", event.text)
            else:
                yield from self._filtered(self._router.feed(self._rearming.feed(event.text)), self._filter)

    def tail(self) -> Iterator[StreamPiece]:
        """What was held at the end of the reply."""
        if self._filter is None:
            return
        yield from self._filtered(self._router.flush(), self._filter)
        if kept := self._filter.flush():
            yield StreamPiece("content", kept)
        self._strips.add(self._filter.drain_strips())
        self._strips.end()

    def _filtered(self, routed: Iterator[tuple[Kind, str]], content_filter: ContentFilter) -> Iterator[StreamPiece]:
        for kind, text in routed:
            if kind == "thinking":
                yield StreamPiece("thinking", text)
            elif kept := content_filter.feed(text):
                yield StreamPiece("content", kept)
        self._strips.add(content_filter.drain_strips())


def _usage_piece(attempt: Attempt) -> StreamPiece:
    reader = attempt.reader
    return StreamPiece(
        "usage",
        data={
            "prompt_tokens": reader.prompt_tokens,
            "completion_tokens": reader.completion_tokens,
            "finish_reason": reader.finish_reason,
        },
    )


async def _with_loading_notice(
    pieces: AsyncGenerator[Piece, None], asked: asyncio.Event, after_s: float
) -> AsyncGenerator[Piece, None]:
    """Says once that the model is loading when the first piece takes long after the request was `asked`.

    Only the first piece is awaited by a task.
    """
    first = asyncio.create_task(_next(pieces))
    request = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({first, request}, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait({first}, timeout=after_s)
        if not done:
            yield StreamPiece("notice", data={"code": "model_loading"})
        piece = await first
    finally:
        first.cancel()
        request.cancel()
        await asyncio.gather(first, request, return_exceptions=True)
    if piece is None:
        return
    yield piece
    async for piece in pieces:
        yield piece


async def _next(pieces: AsyncGenerator[Piece, None]) -> Piece | None:
    try:
        return await anext(pieces)
    except StopAsyncIteration:
        return None
