"""A reader of turns over bare sockets: it sees the head at once, leaves in the middle, and comes back.

Used by the measurements of turns' lives; `tests.bench.stream_bench` has its own, which only reads to the end.
"""

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.sse import Decoder, Frame

TERMINAL = frozenset({"done", "error", "stopped"})


@dataclass
class Turn:
    """One turn as its reader saw it: frames with the moment each arrived (monotonic seconds)."""

    question: str
    turn_id: str = ""
    chat_id: int = 0
    frames: list[tuple[float, Frame]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(frame.data["text"] for _, frame in self.frames if frame.event == "delta")

    @property
    def end(self) -> str | None:
        """The terminal frame's name, once it is there."""
        last = self.frames[-1][1].event if self.frames else ""
        return last if last in TERMINAL else None

    @property
    def last_id(self) -> int:
        return int(self.frames[-1][1].id) if self.frames else 0


@dataclass
class Opened:
    """A response whose head has been read."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The chunks of a chunked body; ends early when the connection does."""
        try:
            while size := int(await self.reader.readline() or b"0", 16):
                yield (await self.reader.readexactly(size + 2))[:size]
        except (OSError, asyncio.IncompleteReadError):
            return

    def cut(self) -> None:
        """Breaks the connection off, as a network does: with a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@asynccontextmanager
async def request(url: str, method: str, path: str, body: Any = None) -> AsyncGenerator[Opened]:
    """Sends a request on a connection of its own; yields once the answer's head was read.

    Raises:
        OSError: when the connection breaks before the head.
    """
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    try:
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        status, headers = await reader.readline(), {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if not status or not headers:
            raise ConnectionError("the connection broke before the head")
        yield Opened(int(status.split()[1]), headers, reader, writer)
    finally:
        writer.close()


async def ask(url: str, turn: Turn, *, begun: asyncio.Event | None = None, **more: Any) -> Turn:
    """Asks and reads to the end of the stream, or of the connection; `begun` is set with the head."""
    body = {"message": turn.question, "client_key": f"{time.monotonic_ns()}-{turn.question[:60]}", **more}
    async with request(url, "POST", "/api/chat", body) as opened:
        acknowledge(turn, opened)
        if begun is not None:
            begun.set()
        await read(turn, opened)
    return turn


def acknowledge(turn: Turn, opened: Opened) -> None:
    """Notes the names the head gives.

    Raises:
        RuntimeError: when the question was refused.
    """
    if opened.status != 200:
        raise RuntimeError(f"{turn.question!r} was refused with {opened.status}")
    turn.turn_id, turn.chat_id = opened.headers["x-turn-id"], int(opened.headers["x-chat-id"])


async def read(turn: Turn, opened: Opened, *, at_most: int | None = None) -> None:
    """Adds the frames of a response to `turn`; with `at_most`, cuts the connection after so many bytes."""
    decoder, taken = Decoder(), 0
    async for data in opened.chunks():
        if at_most is not None and taken + len(data) >= at_most:
            turn.frames += [(time.monotonic(), frame) for frame in decoder.feed(data[: at_most - taken])]
            opened.cut()
            return
        taken += len(data)
        turn.frames += [(time.monotonic(), frame) for frame in decoder.feed(data)]


async def stop(url: str, turn_id: str) -> int:
    """Presses Stop; the answer's status."""
    async with request(url, "POST", f"/api/turns/{turn_id}/stop") as opened:
        return opened.status
