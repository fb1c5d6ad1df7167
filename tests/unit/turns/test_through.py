"""Settling is finished although the turn is cancelled meanwhile."""

import asyncio

import pytest

from app.turns.settle import through


def test_cancellations_do_not_cut_the_work_short() -> None:
    """However often the task is cancelled, the work runs once and its result comes back."""

    async def test() -> None:
        done: list[int] = []
        go = asyncio.Event()

        async def work() -> str:
            await go.wait()
            done.append(1)
            return "settled"

        task = asyncio.create_task(through(work()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await task == "settled"
        assert done == [1]

    asyncio.run(test())


def test_an_error_of_the_work_comes_through() -> None:
    """The caller hears that nothing was settled."""

    async def work() -> None:
        raise ValueError

    async def test() -> None:
        with pytest.raises(ValueError):
            await through(work())

    asyncio.run(test())


def test_work_that_was_cancelled_itself_ends_the_wait() -> None:
    """Nothing would come any more."""

    async def test() -> None:
        async def work() -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await through(work())

    asyncio.run(test())
