"""The event log of a turn: ids, replay, following, closing."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.turns.event_log import Event, EventLog


async def seen(log: EventLog, after: int = 0) -> list[int]:
    return [event.id async for event in log.follow(after)]


def test_ids_count_from_one() -> None:
    """Each event gets the next number, which is also its place."""

    async def run() -> None:
        log = EventLog()
        assert log.last is None
        assert [log.append("delta", {"text": text}) for text in "abc"] == [1, 2, 3]
        assert log.last == Event(3, "delta", {"text": "c"})

    asyncio.run(run())


@given(before=st.integers(0, 6), later=st.integers(0, 6), after=st.integers(-1, 8))
def test_a_watcher_sees_every_event_above_its_position_once(before: int, later: int, after: int) -> None:
    """Wherever a watcher joins and however much was there already, nothing is missing and nothing comes twice."""

    async def run() -> list[int]:
        log = EventLog()
        for _ in range(before):
            log.append("delta", {})
        watcher = asyncio.create_task(seen(log, after))
        for _ in range(later):
            await asyncio.sleep(0)
            log.append("delta", {})
        log.close()
        return await watcher

    assert asyncio.run(run()) == [n for n in range(1, before + later + 1) if n > after]


def test_a_slow_watcher_holds_up_nobody() -> None:
    """A watcher that takes nothing is only behind: others go on, and it finds everything when it comes back."""

    async def run() -> None:
        log = EventLog()
        slow = log.follow()
        log.append("delta", {})
        assert (await anext(slow)).id == 1
        quick = asyncio.create_task(seen(log))
        for _ in range(1000):
            log.append("delta", {})
        log.close()
        assert len(await quick) == 1001
        assert [event.id async for event in slow] == list(range(2, 1002))

    asyncio.run(run())


def test_a_closed_log_takes_no_event() -> None:
    """After the end no watcher could be sure to see it."""

    async def run() -> None:
        log = EventLog()
        log.close()
        log.close()
        assert log.closed
        assert await seen(log) == []
        with pytest.raises(RuntimeError):
            log.append("delta", {})

    asyncio.run(run())
