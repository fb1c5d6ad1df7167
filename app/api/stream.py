"""The response that shows a turn's events to one watcher, as server-sent events.

Owns pings, noticing that the reader left, and dropping a reader who takes nothing. Ending a turn is none of its
business: it only watches. No database session lives in here.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api import frames
from app.logs import kv
from app.turns.event_log import Event

PING_S = 10.0
STALL_S = 30.0
"""A reader whose connection takes no byte for so long is let go; it comes back with its last id and replays."""

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Chat-Stream": f"v{frames.VERSION}"}

_log = logging.getLogger(__name__)


class EventStream(Response):
    """`text/event-stream` of the events that `watch()` yields, until it ends or the reader leaves.

    Args:
        watch: Called once, when the response begins.
        ping_s: Seconds of silence after which a comment is sent, so that proxies and pages know the stream is alive.
        stall_s: Seconds one write may take.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        watch: Callable[[], AsyncGenerator[Event]],
        *,
        headers: Mapping[str, str] | None = None,
        ping_s: float = PING_S,
        stall_s: float = STALL_S,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({**STREAM_HEADERS, **(headers or {})})
        self._watch = watch
        self._ping_s = ping_s
        self._stall_s = stall_s
        self._last_write = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Streams; returns when the turn is over, the reader has left, or the reader takes nothing."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        pump = asyncio.create_task(self._pump(send))
        others = [asyncio.create_task(self._ping(send)), asyncio.create_task(until_gone(receive))]
        try:
            await asyncio.wait([pump, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pump, *others):
                task.cancel()
            results = await asyncio.gather(pump, *others, return_exceptions=True)
        if any(isinstance(result, TimeoutError) for result in results):
            _log.info(kv("watcher_dropped", after_s=self._stall_s))
        elif isinstance(results[0], Exception) and not isinstance(results[0], OSError):
            raise results[0]

    async def _pump(self, send: Send) -> None:
        """Writes every event. One that can't be encoded is left out and raised at the end: a reader needs the terminal
        frame more than that one, and would come back to the same place for ever."""
        failed: ValueError | None = None
        async with aclosing(self._watch()) as events:
            async for event in events:
                try:
                    body = frames.encode(event)
                except ValueError as error:
                    failed = failed or error
                else:
                    await self._write(send, body)
        await self._write(send, b"", more=False)
        if failed is not None:
            raise failed

    async def _ping(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        self._last_write = loop.time()
        while True:
            due = self._last_write + self._ping_s - loop.time()
            if due > 0:
                await asyncio.sleep(due)
            else:
                await self._write(send, frames.PING)

    async def _write(self, send: Send, body: bytes, *, more: bool = True) -> None:
        async with asyncio.timeout(self._stall_s):
            await send({"type": "http.response.body", "body": body, "more_body": more})
        self._last_write = asyncio.get_running_loop().time()


async def until_gone(receive: Receive) -> None:
    """Returns once the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
