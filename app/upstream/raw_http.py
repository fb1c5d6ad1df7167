"""One HTTP/1.1 request and the bytes of its answer, with as little as can be between the socket and the caller.

Owns a connection that is made for one request and closed after it, the parsing of the answer's head and framing, and
that a reader who falls behind slows the server down. Which headers leave this machine is `app.upstream.transport`'s; it
raises what the HTTP client would, so that `app.upstream.failures` knows it. Used by `app.upstream.passthrough` alone,
where a general client's layers would cost more time per token than everything else.
"""

import asyncio
import ssl
from collections import deque
from functools import cache
from typing import cast

import anyio.to_thread
import httptools
import httpx2

from app.upstream.client import Endpoint
from app.upstream.transport import prepared

HEAD_LIMIT = 64 * 1024
"""Bytes of an answer before its head has ended."""

HELD_LIMIT = 256 * 1024
"""Bytes of an answer that wait for the reader; then the server has to."""


class RawExchange(asyncio.Protocol):
    """One request. Made by `ask`; `status` and `headers` (lower-case names) are the answer's once `head` returned."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._parts: deque[bytes] = deque()
        self._held = 0
        self._before_head = 0
        self._has_head = self._is_complete = self._is_paused = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self, wait_s: float) -> None:
        """Waits for the answer's head.

        Raises:
            TimeoutError: when it has not come after `wait_s` seconds.
            httpx2.HTTPError: when the connection breaks, or what answers is no HTTP.
        """
        while not self._has_head:
            if self._error is not None:
                raise self._error
            await self._wait(wait_s)
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("compressed although none was asked for")

    async def read(self, wait_s: float) -> bytes:
        """The bytes that have come, waited for up to `wait_s` seconds; empty at the end. Raises as `head` does."""
        while not self._parts:
            if self._is_complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait(wait_s)
        data = self._parts.popleft() if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def abort(self) -> None:
        """Closes the connection now. Safe to call twice."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._before_head += 0 if self._has_head else len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx2.RemoteProtocolError(str(error)))
        if not self._has_head and self._before_head > HEAD_LIMIT:
            self._fail(httpx2.RemoteProtocolError("the head is too long"))
        if self._held > HELD_LIMIT and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended; without a length of its own that is the answer's end."""
        framed = "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()
        if self._has_head and not framed and exc is None:
            self._is_complete = True
        elif not self._is_complete:
            error = httpx2.ReadError(str(exc)) if exc else httpx2.RemoteProtocolError("closed before the end")
            error.__cause__ = exc
            self._fail(error)
        self._wake()

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the head."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is there, unless it only says that another follows."""
        status = self._parser.get_status_code()
        if status < 200:
            self.headers.clear()
        else:
            self.status, self._has_head = status, True

    def on_body(self, body: bytes) -> None:
        """Bytes of the body, without their framing."""
        self._parts.append(body)
        self._held += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole; the connection has served."""
        if self._has_head:
            self._is_complete = True
            self.abort()

    def _fail(self, error: Exception) -> None:
        if self._error is None and not self._is_complete:
            self._error = error
            self.abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self, wait_s: float) -> None:
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(wait_s, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None


async def ask(endpoint: Endpoint, path: str, body: bytes) -> RawExchange:
    """Connects to the endpoint's server and posts `body` (JSON) to `path` under its base address. To be aborted.

    Raises:
        httpx2.HTTPError, httpx2.InvalidURL, OSError: when there is no connection.
    """
    given = httpx2.Request(
        "POST", f"{endpoint.base_url}{path}", content=body, headers={"Content-Type": "application/json"}
    )
    request = prepared(given, endpoint.api_key)
    url = request.url
    if url.scheme not in ("http", "https") or not url.host:
        raise httpx2.UnsupportedProtocol("the address has to begin with http:// or https://")
    secure = await anyio.to_thread.run_sync(_tls) if url.scheme == "https" else None
    port = url.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(endpoint.connect_s):
            transport, exchange = await asyncio.get_running_loop().create_connection(
                RawExchange, url.host, port, ssl=secure, server_hostname=url.host if secure else None
            )
    except TimeoutError as error:
        raise httpx2.ConnectTimeout("no connection in time") from error
    lines = [b"POST " + url.raw_path + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in request.headers.raw if name.lower() != b"connection"]
    transport.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]))
    transport.write(body)
    return exchange


@cache
def _tls() -> ssl.SSLContext:
    """The certificates that the HTTP client trusts. Reads files, so on a thread."""
    return httpx2.create_ssl_context(trust_env=False)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
