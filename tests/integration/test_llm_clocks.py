"""The model client's clocks, and that leaving ends the server's work."""

import asyncio
import time
from contextlib import aclosing

import pytest

from app.rag.llm import chat_for_endpoint, chat_stream, chat_stream_retried
from app.upstream.client import ClientPool
from tests.asking import QUESTION, ask, collect, eventually, serve
from tests.fault_server import FaultServer, Reply, fault_server
from tests.faults import frame


@pytest.mark.parametrize(
    ("fault", "clocks", "code", "text"),
    [
        ("hang", {"first_token_s": 0.2}, "llm_timeout.first_token", ""),
        ("pings", {"first_token_s": 0.3}, "llm_timeout.first_token", ""),
        ("idle", {"idle_s": 0.3}, "llm_timeout.idle", "a"),
    ],
)
def test_the_clocks_end_a_silent_server_with_one_request(
    fault: str, clocks: dict[str, float], code: str, text: str
) -> None:
    """S8, S10: pings don't count, the connection is closed, the first-token clock is not retried."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        await pool.client(server.endpoint(fault))
        endpoint = server.endpoint(fault, retry_max=2, **clocks)
        outcome = await collect(chat_stream_retried(endpoint, QUESTION, tools=None, clients=pool))
        assert (outcome.code, outcome.text()) == (code, text)
        assert outcome.error is not None
        assert outcome.error.status == 504
        await eventually(lambda: server.seen[0].closed_at is not None)
        assert len(server.seen) == 1

    serve(test)


def test_the_total_clock_of_a_turn_ends_even_a_talking_server() -> None:
    """The total counts from the making of the turn's model, over all its requests; the text stands."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        await pool.client(server.endpoint("endless"))
        chat = chat_for_endpoint(server.endpoint("endless", total_s=0.4), pool)
        outcome = await collect(chat(QUESTION, tools=None))
        assert outcome.code == "llm_timeout.total"
        assert set(outcome.text()) == {"a"}
        assert (await collect(chat(QUESTION, tools=None))).code == "llm_timeout.total"

    serve(test)


def test_a_stream_left_open_after_its_finish_reason_is_whole() -> None:
    """A server that never closes costs a short wait, not the answer."""
    outcome, _ = ask("open-after-finish", idle_s=0.2)
    assert (outcome.code, outcome.text()) == (None, "a")


def test_a_slow_start_is_noticed_once_and_then_answered() -> None:
    """S11: `model_loading`, then the reply as if nothing were."""
    outcome, _ = ask("late", loading_notice_s=0.05)
    assert outcome.data("notice") == [{"code": "model_loading"}]
    assert outcome.text() == "Hello"
    assert ask("ok", loading_notice_s=2.0)[0].data("notice") == []


@pytest.mark.parametrize("moment", ["before the first token", "in the middle"])
def test_leaving_closes_the_endpoint_stream_at_once(moment: str) -> None:
    """S13: a cancelled turn frees the server within half a second."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        fault = "hang" if moment == "before the first token" else "endless"
        await pool.client(server.endpoint(fault))
        got = asyncio.Event()

        async def turn() -> None:
            stream = chat_stream_retried(
                server.endpoint(fault, loading_notice_s=0.1), QUESTION, tools=None, clients=pool
            )
            async with aclosing(stream):
                async for _ in stream:
                    got.set()

        task = asyncio.create_task(turn())
        await got.wait()
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: server.seen[0].closed_at is not None)
        assert (server.seen[0].closed_at or 0) - begun < 0.5

    serve(test)


def test_breaking_off_the_iteration_closes_the_endpoint_stream() -> None:
    """Not only cancelling: `aclosing` is enough, at the notice as well as at a token."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        for fault in ("hang", "endless"):
            await pool.client(server.endpoint(fault))
            stream = chat_stream(server.endpoint(fault, loading_notice_s=0.1), QUESTION, tools=None, clients=pool)
            async with aclosing(stream):
                assert await anext(stream)
                await eventually(lambda: len(server.seen) > 0)
            await eventually(lambda: server.seen[-1].closed_at is not None)

    serve(test)


def test_a_stream_cut_at_any_byte_is_never_taken_for_whole() -> None:
    """S2: an answer from the end of the finish reason's line on; before it broken off, with the text that arrived."""
    said = frame("Grüße, ") + frame("Welt 🌍.")
    stream = said + frame(finish="stop") + b"data: [DONE]\n\n"
    whole_from = len(said + frame(finish="stop")) - 1

    async def cut(reply: Reply) -> None:
        await reply.head()
        if reply.nth > 1:
            await reply.send(stream[: reply.nth - 1])
        reply.close()

    async def run() -> None:
        async with fault_server({"cut": cut}) as server:
            pool = ClientPool()
            for size in range(len(stream) + 1):
                outcome = await collect(chat_stream(server.endpoint("cut"), QUESTION, tools=None, clients=pool))
                assert "Grüße, Welt 🌍.".startswith(outcome.text()), size
                broken = "llm_incomplete.cut" if outcome.text() else "llm_unavailable.reset"
                assert outcome.code == (None if size >= whole_from else broken), size
            await pool.aclose()

    asyncio.run(asyncio.wait_for(run(), 100))
