"""Turns as tasks: whatever ends one, its body gets to settle, once."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from app.turns.registry import ShuttingDownError, TurnRegistry, TurnScope
from tests.waiting import until


class Body:
    """A turn that streams until it is ended, and notes how that happened."""

    def __init__(self) -> None:
        self.ends: list[str | None] = []
        self.finish = asyncio.Event()

    async def __call__(self, scope: TurnScope) -> None:
        try:
            scope.log.append("start", {})
            await self.finish.wait()
            self.ends.append("done")
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.ends.append(scope.stop_reason)
        scope.log.append("end", {})


async def watched(registry: TurnRegistry, turn_id: str) -> list[str]:
    async with aclosing(registry.watch(turn_id)) as events:
        return [event.event async for event in events]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


def test_a_turn_runs_without_any_watcher() -> None:
    """Closing the tab ends nothing: the turn settles and can be replayed whole afterwards."""

    async def test() -> None:
        registry, body = TurnRegistry(), Body()
        registry.start("t1", body)
        assert registry.active == 1
        body.finish.set()
        await registry.finished("t1")
        assert body.ends == ["done"]
        assert registry.active == 0
        assert await watched(registry, "t1") == ["start", "end"]
        assert await watched(registry, "t1") == ["start", "end"]

    run(test)


def test_stop_twice_is_stop_once() -> None:
    """The second Stop finds a turn that is ending and must not cut its settling short."""

    async def test() -> None:
        registry, body = TurnRegistry(), Body()
        registry.start("t1", body)
        await asyncio.sleep(0)
        assert registry.stop("t1")
        assert not registry.stop("t1")
        await registry.finished("t1")
        assert not registry.stop("t1")
        assert not registry.stop("unknown")
        assert body.ends == ["stop"]
        assert await watched(registry, "t1") == ["start", "end"]

    run(test)


def test_stop_works_before_the_first_step() -> None:
    """A turn stopped in the very tick it was started still runs its body, which settles."""

    async def test() -> None:
        registry, body = TurnRegistry(), Body()
        registry.start("t1", body)
        assert registry.stop("t1")
        await registry.finished("t1")
        assert body.ends == ["stop"]

    run(test)


def test_the_total_clock_ends_a_turn() -> None:
    """A turn that goes on for ever is told `total`; one that ends in time is not."""

    async def test() -> None:
        registry, slow, quick = TurnRegistry(), Body(), Body()
        registry.start("t1", slow, total_s=0.02)
        registry.start("t2", quick, total_s=0.02)
        quick.finish.set()
        await registry.finished("t1")
        assert (slow.ends, quick.ends) == (["total"], ["done"])

    run(test)


def test_a_turn_nobody_watches_ends_after_the_grace() -> None:
    """Only where an operator set one; the countdown starts when the last watcher leaves."""

    async def test() -> None:
        registry, body = TurnRegistry(detach_grace_s=0.03), Body()
        registry.start("t1", body)
        async with aclosing(registry.watch("t1")) as first, aclosing(registry.watch("t1")) as second:
            await anext(first)
            await anext(second)
            await first.aclose()
            await asyncio.sleep(0.06)
            assert body.ends == []
        await registry.finished("t1")
        assert body.ends == ["detach"]

    run(test)


def test_a_new_watcher_ends_the_countdown() -> None:
    """A reload within the grace costs nothing."""

    async def test() -> None:
        registry, body = TurnRegistry(detach_grace_s=0.05), Body()
        registry.start("t1", body)
        async with aclosing(registry.watch("t1")) as first:
            await anext(first)
        again = asyncio.create_task(watched(registry, "t1"))
        await asyncio.sleep(0.1)
        body.finish.set()
        assert await again == ["start", "end"]
        assert body.ends == ["done"]

    run(test)


def test_without_a_grace_leaving_ends_nothing() -> None:
    """The default."""

    async def test() -> None:
        registry, body = TurnRegistry(), Body()
        registry.start("t1", body)
        async with aclosing(registry.watch("t1")) as first:
            await anext(first)
        await asyncio.sleep(0.02)
        body.finish.set()
        await registry.finished("t1")
        assert body.ends == ["done"]

    run(test)


def test_shutdown_settles_every_turn_and_ends_every_watcher() -> None:
    """Also a turn started a moment before; afterwards no new one is taken."""

    async def test() -> None:
        registry, bodies = TurnRegistry(), [Body() for _ in range(20)]
        for number, body in enumerate(bodies[:-1]):
            registry.start(f"t{number}", body)
        watchers = [asyncio.create_task(watched(registry, f"t{number}")) for number in range(19)]
        await asyncio.sleep(0)
        registry.start("t19", bodies[-1])
        await registry.shutdown()
        await registry.shutdown()
        assert [body.ends for body in bodies] == [["shutdown"]] * 20
        assert await asyncio.gather(*watchers) == [["start", "end"]] * 19
        with pytest.raises(ShuttingDownError):
            registry.start("late", Body())

    run(test)


def test_a_turn_that_does_not_settle_holds_up_no_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    """It is named in the log, its watchers end all the same; the next start sweeps its rows."""

    async def test() -> None:
        async def stuck(scope: TurnScope) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()

        registry = TurnRegistry()
        registry.start("t1", stuck)
        watcher = asyncio.create_task(watched(registry, "t1"))
        await asyncio.sleep(0)
        await registry.shutdown(within_s=0.02)
        assert await watcher == []

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "turn_did_not_settle turn=t1" in caplog.text


def test_an_ended_turn_is_forgotten_after_a_while() -> None:
    """Then a replay is refused and the page reads from the database."""

    async def test() -> None:
        registry, body = TurnRegistry(keep_s=0.02), Body()
        scope = registry.start("t1", body)
        assert registry.get("t1") is scope
        body.finish.set()
        await registry.finished("t1")
        assert registry.get("t1") is scope
        await asyncio.sleep(0.05)
        assert registry.get("t1") is None
        await registry.finished("t1")
        with pytest.raises(KeyError):
            await watched(registry, "t1")

    run(test)


def test_a_turn_has_just_begun_for_a_moment() -> None:
    """What else goes on waits for that moment, not for as long as a stream lasts; also where the answer was there
    sooner, since the next question may be as near."""

    async def test() -> None:
        registry, body = TurnRegistry(), Body()
        assert not registry.starting
        registry.start("a", body)
        assert registry.starting
        until(lambda: not registry.starting, "its first moment is over")
        assert registry.active == 1
        registry.start("b", body)
        assert registry.starting
        body.finish.set()
        await registry.finished("b")
        assert registry.starting
        until(lambda: not registry.starting, "its first moment is over")

    run(test)
