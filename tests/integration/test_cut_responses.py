"""The stream to the browser, cut after every byte by a proxy, and taken up again: nothing lost, nothing twice.

A real server process and a mock model that speaks slowly. Every 16th byte is tried, all of them with `DOCENT_LONG=1`.
"""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.store.engine import Database
from app.store.models.chats import Message, Turn
from tests.byte_proxy import ByteProxy, byte_proxy
from tests.e2e.mock_llm import MockLlm
from tests.server import ServerProcess
from tests.sse import Decoder, Frame, text_of

LONG = bool(os.environ.get("DOCENT_LONG"))
STEP = 1 if LONG else 16
AT_ONCE = 8
RATE = 150.0
LIMIT_S = 1800 if LONG else 300


@dataclass
class Received:
    """What came of a response: its head's fields, where the head is whole, and the frames that are."""

    headers: dict[str, str]
    frames: list[Frame]
    size: int


async def received(port: int, method: str, path: str, host: str, **headers: str) -> Received:
    """Sends a request and takes what comes until the connection ends."""
    body = headers.pop("body", "")
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join([*lines, "", body]).encode())
        data = b""
        try:
            while part := await reader.read(65536):
                data += part
        except ConnectionError:
            pass  # a reset: what came before it counts
    finally:
        writer.close()
    return parsed(data)


def parsed(data: bytes) -> Received:
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return Received({}, [], len(data))
    fields = [line.partition(":") for line in head.decode().split("\r\n")[1:]]
    headers = {name.lower(): value.strip() for name, _, value in fields}
    return Received(headers, Decoder().feed(unchunked(body)), len(data))


def unchunked(body: bytes) -> bytes:
    """The bytes of a chunked body that may end anywhere."""
    found = b""
    while b"\r\n" in body:
        size, body = body.split(b"\r\n", 1)
        found, body = found + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return found


@dataclass
class Reader:
    """A browser: it asks through the proxy, and comes back to the server itself."""

    proxy: ByteProxy
    port: int

    async def turn(self, key: str, cut_after: int | None) -> tuple[str, list[Frame], int]:
        """One question whose response is cut; the turn's id, all frames together, the size of the first response."""
        question = json.dumps({"message": f"How often are backups of {key} made?", "client_key": key})
        post = {"content_type": "application/json", "body": question}
        if cut_after is not None:
            self.proxy.limits.append(cut_after)
        first = await received(self.proxy.port, "POST", "/api/chat", self.host, **post)
        turn_id = first.headers.get("x-turn-id")
        if turn_id is None:  # not even the head: the browser posts again, with the same key
            again = await received(self.port, "POST", "/api/chat", self.host, **post)
            return again.headers["x-turn-id"], again.frames, first.size
        last = first.frames[-1].id if first.frames else "0"
        path = f"/api/turns/{turn_id}/events"
        rest = await received(self.port, "GET", path, self.host, last_event_id=last)
        return turn_id, [*first.frames, *rest.frames], first.size

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


async def all_cuts(port: int) -> dict[str, list[Frame]]:
    """Turns cut at every `STEP`th byte; frames by turn."""
    turns: dict[str, list[Frame]] = {}
    async with byte_proxy(port) as proxy:
        reader = Reader(proxy, port)
        _, _, size = await reader.turn("whole", None)
        cuts = list(range(1, size, STEP))
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(cut_after: int) -> None:
            async with gate, asyncio.timeout(60):
                turn_id, frames, _ = await reader.turn(f"volume {cut_after}", cut_after)
                turns[turn_id] = frames

        await asyncio.gather(*[one(cut_after) for cut_after in cuts])
        assert len(turns) == len(cuts)
        assert proxy.cuts >= 0.9 * len(cuts)
    return turns


@pytest.mark.timeout(LIMIT_S + 60)
def test_a_response_cut_at_any_byte_is_taken_up_without_loss_or_double(tmp_path: Path) -> None:
    """G4: ids without a gap, one terminal frame, the text equal to the database's byte for byte."""
    data = tmp_path / "data"
    with MockLlm(rate=RATE) as mock, ServerProcess(data, LLM_BASE_URL=mock.base_url, LLM_MODEL="mock-model") as server:
        turns = asyncio.run(asyncio.wait_for(all_cuts(server.port), LIMIT_S))
        server.terminate()
        log = server.log()
    stored = rows(data)
    for turn_id, frames in turns.items():
        assert [int(frame.id) for frame in frames] == list(range(1, len(frames) + 1)), turn_id
        assert [frame.event for frame in frames if frame.event in ("done", "error", "stopped")] == ["done"], turn_id
        assert (text_of(frames), "done", "complete") == stored[turn_id], turn_id
        assert text_of(frames).strip(), turn_id
    assert len(turn_lines(log)) == len(turns) + 1
    assert "ERROR" not in log
    assert "Traceback" not in log


def turn_lines(log: str) -> list[str]:
    """The turns that the server's log tells of: each question was one, however often it was posted."""
    return [line for line in log.splitlines() if "chat_turn turn=" in line]


def rows(data: Path) -> dict[str, Any]:
    """Turn → its text and states, as stored."""
    database = Database(f"sqlite:///{data / 'docent.db'}")
    query = (
        select(Turn.id, Message.content, Turn.state, Message.status)
        .join(Message, Message.turn_id == Turn.id)
        .where(Message.role == "assistant")
    )
    try:
        return database.read(lambda session: {row[0]: tuple(row[1:]) for row in session.execute(query)})
    finally:
        database.close()
