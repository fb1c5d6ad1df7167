"""A model server on raw sockets that misbehaves on purpose: one named fault per address.

`http://127.0.0.1:PORT/<fault>/v1` answers every request with that fault of the table it is given (`tests/faults.py`);
what it saw, and when, stands in `seen`. A sensible model server is `tests/e2e/mock_llm.py`.
"""

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.upstream.client import Endpoint


@dataclass
class Seen:
    """One request, and when its connection was closed by the other side."""

    fault: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    closed_at: float | None = None


@dataclass
class FaultServer:
    """The running server."""

    port: int
    seen: list[Seen] = field(default_factory=list)

    def endpoint(self, fault: str, **changes: Any) -> Endpoint:
        """An endpoint with short clocks that meets `fault`."""
        short: dict[str, Any] = {"model": "m", "connect_s": 2.0, "first_token_s": 5.0, "idle_s": 5.0, "retry_max": 0}
        return Endpoint(f"http://127.0.0.1:{self.port}/{fault}/v1", **{**short, **changes})


class Reply:
    """What a fault writes with."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen, nth: int) -> None:
        self.seen, self.nth = seen, nth
        self._reader, self._writer = reader, writer

    async def head(self, status: str = "200 OK", kind: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode())
        await self._writer.drain()

    async def raw(self, data: bytes) -> None:
        """Sends bytes as they are, without any framing."""
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self._writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def whole(self, status: str, kind: str, body: bytes, **headers: str) -> None:
        await self.head(status, kind, **headers)
        if body:
            await self.send(body)
        await self.end()

    async def json(self, status: str, payload: object, **headers: str) -> None:
        await self.whole(status, "application/json", json.dumps(payload).encode(), **headers)

    def reset(self) -> None:
        """Closes the connection with a TCP reset."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """Closes the connection after what was sent, in the middle of the body."""
        self._writer.close()

    async def until_closed(self, tick_s: float = 0.05, ping: bytes = b"") -> None:
        """Waits until the other side closes, sending `ping` meanwhile; notes when."""
        while True:
            try:
                if not await asyncio.wait_for(self._reader.read(1), tick_s):
                    break
            except TimeoutError:
                if ping:
                    await self.send(ping)
            except ConnectionError:
                break
        self.seen.closed_at = time.monotonic()


Fault = Callable[[Reply], Awaitable[None]]

PROBED = ("/props", "/version", "/api/tags", "/api/show", "/api/ps", "/api/v0/models")
"""Where Docent asks a server what it is, beside the requests under test: answered with 404, and not noted."""

PROBED_BY_TURNS = (*PROBED, "/models")
"""Where a turn that names its model asks, too: for the window."""


@asynccontextmanager
async def fault_server(
    faults: Mapping[str, Fault], listening: socket.socket | None = None, probed: tuple[str, ...] = PROBED
) -> AsyncIterator[FaultServer]:
    """Runs the server in the test's own loop, at a port of its own or at a socket that listens already."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while request := await _request(reader, writer):
                path, headers, body = request
                found = Seen(path.split("/")[1], headers, body, time.monotonic())
                if path.endswith(probed):
                    await Reply(reader, writer, found, 1).json("404 Not Found", {})
                    continue
                server.seen.append(found)
                nth = sum(seen.fault == found.fault for seen in server.seen)
                await faults[found.fault](Reply(reader, writer, found, nth))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side left, or the test is over
        finally:
            writer.close()

    sock = listening or socket.create_server(("127.0.0.1", 0))
    listener = await asyncio.start_server(serve, sock=sock)
    server = FaultServer(listener.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, dict[str, str], dict[str, Any]] | None:
    try:
        first = await reader.readexactly(1)
        if first == b"\x16":  # a TLS handshake: this server speaks plain HTTP
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return None
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return head[0].split(" ")[1], headers, json.loads(body or b"{}")
