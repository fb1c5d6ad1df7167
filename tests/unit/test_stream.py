"""The response that shows a turn: pings, a reader who leaves, a reader who takes nothing."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.api.stream import EventStream
from app.turns.event_log import Event
from tests.sse import Decoder

SCOPE: dict[str, Any] = {"type": "http"}


class Wire:
    """One connection: what was sent, and whether the reader is there and takes anything."""

    def __init__(self) -> None:
        self.sent = b""
        self.ended = False
        self.left = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()

    async def send(self, message: Any) -> None:
        await self.takes.wait()
        self.sent += message.get("body", b"")
        self.ended = self.ended or (message["type"] == "http.response.body" and not message.get("more_body"))

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}


class Source:
    """A turn's events; notes that its watcher was closed."""

    def __init__(self, count: int, *, forever: bool = False) -> None:
        self.count = count
        self.forever = forever
        self.closed = False

    async def watch(self) -> AsyncGenerator[Event]:
        try:
            for number in range(1, self.count + 1):
                yield Event(number, "delta", {"text": "x"})
            if self.forever:
                await asyncio.Event().wait()
        finally:
            self.closed = True


def test_a_stream_ends_with_its_turn() -> None:
    """All events, then the end of the body; the watcher is closed."""

    async def test() -> None:
        wire, source = Wire(), Source(3)
        await EventStream(source.watch)(SCOPE, wire.receive, wire.send)
        assert [frame.id for frame in Decoder().feed(wire.sent)] == ["1", "2", "3"]
        assert wire.ended
        assert source.closed

    asyncio.run(test())


def test_silence_is_filled_with_pings() -> None:
    """A proxy or page that hears nothing for long would give up."""

    async def test() -> int:
        wire, source = Wire(), Source(1, forever=True)
        response = asyncio.create_task(EventStream(source.watch, ping_s=0.01)(SCOPE, wire.receive, wire.send))
        decoder = Decoder()
        async with asyncio.timeout(10):
            while decoder.comments < 3:
                await asyncio.sleep(0.01)
                decoder.feed(wire.sent)
                wire.sent = b""
        wire.left.set()
        await response
        return decoder.comments

    assert asyncio.run(test()) >= 3


def test_a_reader_who_leaves_ends_only_the_response() -> None:
    """The watcher is closed at once; nothing is logged as an error."""

    async def test() -> None:
        wire, source = Wire(), Source(1, forever=True)
        response = asyncio.create_task(EventStream(source.watch)(SCOPE, wire.receive, wire.send))
        await asyncio.sleep(0)
        wire.left.set()
        await asyncio.wait_for(response, 10)
        assert source.closed
        assert not wire.ended

    asyncio.run(test())


def test_a_reader_who_takes_nothing_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    """It comes back with its last id; until then it costs nothing."""

    async def test() -> None:
        wire, source = Wire(), Source(1000, forever=True)

        async def takes_the_head_only(message: Any) -> None:
            await wire.send(message)
            wire.takes.clear()

        response = EventStream(source.watch, stall_s=0.02)(SCOPE, wire.receive, takes_the_head_only)
        await asyncio.wait_for(response, 10)
        assert source.closed

    with caplog.at_level(logging.INFO):
        asyncio.run(test())
    assert "watcher_dropped after_s=0.020" in caplog.text


def test_a_connection_that_breaks_is_no_error() -> None:
    """The server says OSError when it writes to a reader who is gone."""

    async def test() -> None:
        source = Source(5)

        async def broken(message: Any) -> None:
            if message["type"] == "http.response.body":
                raise OSError

        await EventStream(source.watch)(SCOPE, Wire().receive, broken)
        assert source.closed

    asyncio.run(test())


def test_an_error_of_the_watcher_is_not_swallowed() -> None:
    """What nobody expected reaches the log of the edge."""

    async def watch() -> AsyncGenerator[Event]:
        yield Event(1, "no such event", {})

    async def test() -> None:
        wire = Wire()
        with pytest.raises(ValueError, match="no such event"):
            await EventStream(watch)(SCOPE, wire.receive, wire.send)

    asyncio.run(test())


def test_a_frame_that_cannot_be_sent_costs_no_other_one() -> None:
    """The terminal frame still comes, the body ends, and what was wrong reaches the log of the edge."""

    async def watch() -> AsyncGenerator[Event]:
        yield Event(1, "delta", {"text": "x"})
        yield Event(2, "tool", {"args": {"offset": float("inf")}})
        yield Event(3, "stopped", {"message_id": 1, "answer_chars": 1})

    async def test() -> None:
        wire = Wire()
        with pytest.raises(ValueError, match="JSON"):
            await EventStream(watch)(SCOPE, wire.receive, wire.send)
        assert [frame.event for frame in Decoder().feed(wire.sent)] == ["delta", "stopped"]
        assert wire.ended

    asyncio.run(test())
