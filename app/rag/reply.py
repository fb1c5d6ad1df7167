"""One attempt at a reply: provider events under the clocks.

Owns the first-token, idle and total clocks, the choice between stream, JSON body and web page, and the mapping of what
went wrong to `ReplyError`. Knows no pieces, filter or retry: `app.rag.llm` does, and is the only caller.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any, Literal, TypeVar

from app.rag.errors import LLMError
from app.rag.sse_reader import REQUEST_LIMIT, Failed, ProviderEvent, SseReader
from app.upstream.client import ClientPool, Endpoint
from app.upstream.exchange import Exchange
from app.upstream.failures import Failure, UpstreamError, failure_of_text, is_html, tools_refused

LINGER_S = 5.0
"""How long a server may take from the finish reason to the end of the stream; the usage comes in between."""

DRAIN_S = 0.05
"""How long the end of the body is waited for after `[DONE]`, so that the connection can be used again."""

_STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_Clock = Literal["first_token", "idle", "total", "linger"]
T = TypeVar("T")


class ReplyError(LLMError):
    """An `LLMError` that still knows the failure behind it, for the retry."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(
            failure.code,
            reason=failure.reason or None,
            provider_status=failure.status,
            retryable=failure.retryable,
            setting=failure.setting,
            params=failure.params,
        )
        self.failure = failure
        self.status = 504 if failure.code == "llm_timeout" else 502


class Attempt:
    """One request and its reply.

    Args:
        request: The fields of a chat completion but `model` and the streaming ones.
        deadline: When the turn's total clock runs out, by the pool's clock; None for never.
    """

    def __init__(self, pool: ClientPool, endpoint: Endpoint, request: dict[str, Any], deadline: float | None) -> None:
        self.reader = SseReader()
        self._clock = pool.clock
        self._endpoint = endpoint
        self._exchange = Exchange(pool, endpoint, request)
        self._with_tools = "tools" in request
        self._deadline = math.inf if deadline is None else deadline
        self._running: _Clock = "first_token"
        self._until = math.inf
        self.asked = asyncio.Event()
        """Set once the request is on its way: making the client, a second the first time, is no wait for the model."""

    async def events(self) -> AsyncGenerator[list[ProviderEvent], None]:
        """Events as they arrive, several at a time, never `Failed`. Ends when the server says so, or the stream does.

        Raises:
            ReplyError: for everything that is not a reply. A stream that merely ends is no error here: ask
                `reader.complete`.
        """
        try:
            await self._timed(self._exchange.prepare())
            self.asked.set()
            self._start("first_token", self._endpoint.first_token_s)
            await self._timed(self._exchange.open())
            data = await self._read()
            if self._is_json(data):
                data = await self._whole(data)
                batch, failed = self._split(self.reader.feed_json(data))
            else:
                batch, failed = self._split(self.reader.feed(data))
            while data and not failed and not self.reader.done:
                if batch:
                    yield batch
                    self._start("idle", self._endpoint.idle_s)
                data = await self._read()
                batch, failed = self._split(self.reader.feed(data) if data else self.reader.flush())
            if batch:
                yield batch
            if failed:
                raise ReplyError(failed)
            await self._drain()
        finally:
            await self._exchange.aclose()

    def incomplete(self, reason: str = "cut") -> ReplyError:
        """The reply broke off."""
        return ReplyError(Failure("llm_incomplete", reason, params={"server": self._endpoint.server}))

    async def _read(self) -> bytes:
        """The next bytes; empty at the end, or when a finished reply's stream is not closed in time or properly."""
        if self.reader.complete and self._running != "linger":
            self._start("linger", min(LINGER_S, self._endpoint.idle_s))
        try:
            return await self._timed(self._exchange.read())
        except ReplyError:
            if self.reader.complete and self._clock.monotonic() < self._deadline:
                return b""
            raise

    async def _whole(self, data: bytes) -> bytes:
        body = bytearray(data)
        while data and len(body) <= REQUEST_LIMIT:
            data = await self._read()
            body += data
        return bytes(body)

    async def _drain(self) -> None:
        with suppress(TimeoutError, UpstreamError):
            async with asyncio.timeout(DRAIN_S):
                while self.reader.done and await self._exchange.read():
                    pass

    def _is_json(self, data: bytes) -> bool:
        """Whether the body is one JSON object in place of a stream.

        Raises:
            ReplyError: when it is a web page.
        """
        if is_html(self._exchange.content_type, data):
            raise ReplyError(self._rejected("html"))
        kind = self._exchange.content_type.partition(";")[0].strip().lower()
        return kind.endswith("json") and "ndjson" not in kind and not data.lstrip().startswith(_STREAM_STARTS)

    def _split(self, events: list[ProviderEvent]) -> tuple[list[ProviderEvent], Failure | None]:
        """Events apart from the failure that may end them."""
        if not events or not isinstance(last := events[-1], Failed):
            return events, None
        return events[:-1], self._failure(last)

    def _failure(self, failed: Failed) -> Failure:
        match failed.kind:
            case "size" | "frames" | "cut":
                return Failure("llm_incomplete", failed.kind, params={"server": self._endpoint.server})
            case "not_api":
                return self._rejected("not_api")
            case "provider":
                refused = tools_refused(failed.text, self._endpoint) if self._with_tools else None
                known = refused or failure_of_text(failed.text, self._endpoint)
                return known or Failure("llm_rejected", "error_event", params={"server": self._endpoint.server})

    def _rejected(self, reason: str) -> Failure:
        params = {"server": self._endpoint.server}
        return Failure("llm_rejected", reason, retryable=False, setting="LLM_BASE_URL", params=params)

    def _start(self, clock: _Clock, seconds: float) -> None:
        self._running, self._until = clock, self._clock.monotonic() + seconds

    async def _timed(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` until the running clock or the total one strikes."""
        left = min(self._until, self._deadline) - self._clock.monotonic()
        try:
            async with asyncio.timeout(None if left == math.inf else max(0.0, left)):
                return await work
        except TimeoutError:
            raise ReplyError(self._struck()) from None
        except UpstreamError as error:
            raise ReplyError(error.failure) from error

    def _struck(self) -> Failure:
        clock: _Clock = "total" if self._deadline <= self._until else self._running
        seconds = getattr(self._endpoint, f"{clock}_s", LINGER_S)
        params = {"server": self._endpoint.server, "limit": f"{seconds:g}"}
        return Failure("llm_timeout", clock, setting=f"LLM_{clock.upper()}_S", params=params)
