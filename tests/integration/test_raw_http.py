"""The bare HTTP exchange under a pass-through: framings, heads, and servers that speak something else."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from app.upstream.client import Endpoint
from app.upstream.raw_http import HEAD_LIMIT, HELD_LIMIT, RawExchange, ask

OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


async def exchange(said: bytes, use: Callable[[RawExchange], Awaitable[None]], *, stay: bool = False) -> bytes:
    """Asks a server that says `said` and then closes, unless it is to stay; what it was asked."""
    asked, served = bytearray(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.extend(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(2))
        writer.write(said)
        if stay:
            await reader.read()
        writer.close()
        served.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await ask(Endpoint(f"http://127.0.0.1:{port}/v1", "key-1"), "/chat?x=1", b"{}")
        try:
            await use(found)
        finally:
            found.abort()
            found.abort()
            await served.wait()
    return bytes(asked)


async def whole(found: RawExchange) -> bytes:
    await found.head(5)
    body = b""
    while part := await found.read(5):
        body += part
    return body


@pytest.mark.parametrize(
    "said",
    [
        OK + b"content-length: 5\r\n\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nlate: 1\r\n\r\n",
        OK + b"\r\nhello",
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + OK + b"content-length: 5\r\n\r\nhello",
    ],
    ids=["length", "chunks", "until the end", "after a hint"],
)
def test_an_answer_is_read_in_every_framing(said: bytes) -> None:
    """Its head, its bytes, its end; and the request is one the server can read."""

    async def use(found: RawExchange) -> None:
        assert await whole(found) == b"hello"
        assert (found.status, found.headers["content-type"], "link" in found.headers) == (200, "text/plain", False)

    asked = asyncio.run(exchange(said, use))
    head = asked.decode().split("\r\n")
    assert head[0] == "POST /v1/chat?x=1 HTTP/1.1"
    assert {"authorization: bearer key-1", "content-length: 2", "connection: close"} <= {line.lower() for line in head}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"220 mail.example ESMTP\r\n", httpx2.RemoteProtocolError),
        (OK, httpx2.RemoteProtocolError),
        (OK + b"x: " + b"y" * HEAD_LIMIT, httpx2.RemoteProtocolError),
        (b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", httpx2.RemoteProtocolError),
        (OK + b"content-length: 9\r\n\r\nhello", httpx2.RemoteProtocolError),
        (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", httpx2.RemoteProtocolError),
        (OK + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello", httpx2.DecodingError),
    ],
    ids=["nothing", "mail", "half a head", "endless head", "upgrade", "short", "no last chunk", "compressed"],
)
def test_what_is_no_whole_answer_is_an_error(said: bytes, error: type[Exception]) -> None:
    """As the HTTP client would raise it."""

    async def use(found: RawExchange) -> None:
        with pytest.raises(error):
            await whole(found)

    asyncio.run(exchange(said, use))


def test_a_reader_who_falls_behind_slows_the_server_down() -> None:
    """Not much more than the limit waits here; all of it comes in the end."""
    size = 20 * HELD_LIMIT

    async def use(found: RawExchange) -> None:
        await found.head(5)
        body = 0
        while part := await found.read(5):
            assert len(part) < 4 * HELD_LIMIT
            body += len(part)
            await asyncio.sleep(0)
        assert body == size

    asyncio.run(exchange(OK + f"content-length: {size}\r\n\r\n".encode() + b"x" * size, use, stay=True))


def test_waiting_has_an_end() -> None:
    """For the head and for the body."""

    async def use(found: RawExchange) -> None:
        with pytest.raises(TimeoutError):
            await found.head(0.05)

    asyncio.run(exchange(b"HTTP/1.1 200 OK\r\n", use, stay=True))


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/v1", "127.0.0.1:1/v1", "http:///v1"])
def test_an_address_that_is_none_is_not_asked(address: str) -> None:
    """The error names it for what it is."""
    with pytest.raises((httpx2.UnsupportedProtocol, httpx2.InvalidURL)):
        asyncio.run(ask(Endpoint(address), "/x", b"{}"))


def test_a_server_that_speaks_no_tls_is_an_error() -> None:
    """`https` to a plain server."""

    async def run() -> None:
        async with await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await ask(Endpoint(f"https://127.0.0.1:{port}/v1"), "/x", b"{}")

    with pytest.raises(OSError):
        asyncio.run(run())
