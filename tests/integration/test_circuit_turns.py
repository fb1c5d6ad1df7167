"""A dead model server and fifty people: failing at once instead of waiting, one probe in half a minute."""

import asyncio
import logging

import pytest

from app.catalog import load_catalog
from app.rag.llm import chat_stream_retried
from app.settings import Settings
from app.upstream.circuit import FAILURES, PAUSE_S
from app.upstream.client import ClientPool
from tests.asgi import Client
from tests.asking import QUESTION, collect, serve
from tests.fault_server import FaultServer, Reply
from tests.fault_turns import ask_all, in_turns, switched
from tests.faults import FAULTS
from tests.shifted_clock import ShiftedClock
from tests.sse import Frame

USERS = 50


def last_of(turns: list[list[Frame]]) -> list[Frame]:
    return [frames[-1] for frames in turns]


def circuit_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records]
    return [line.split()[0] for line in said if line.startswith("model_server_")]


async def dead(client: Client, server: FaultServer) -> None:
    """Makes the circuit of the server open."""
    assert {frame.data["code"] for frame in last_of(await ask_all(client, FAILURES))} == {"llm_unavailable"}
    assert len(server.seen) == FAILURES


def test_fifty_people_send_one_probe_per_half_minute(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """S12: during the pause nobody's question reaches the server, no retry is shown, and the sentence says when."""
    caplog.set_level(logging.INFO)
    clock = ShiftedClock()
    fault, heal = switched(FAULTS["503"], FAULTS["ok"])

    async def test(client: Client, server: FaultServer) -> None:
        first = await ask_all(client, USERS)
        assert {frame.data["code"] for frame in last_of(first)} == {"llm_unavailable"}
        assert len(server.seen) <= 3 * USERS
        before = len(server.seen)
        paused = await ask_all(client, USERS)
        assert len(server.seen) == before
        assert [[frame.event for frame in frames] for frames in paused] == [["start", "error"]] * USERS
        sentences = {frame.data["message"] for frame in last_of(paused)}
        assert all("did not answer five times in a row" in sentence for sentence in sentences)
        assert all(frame.data["retryable"] for frame in last_of(paused))
        clock.shift(PAUSE_S)
        await ask_all(client, USERS)
        assert len(server.seen) == before + 1
        heal()
        clock.shift(PAUSE_S)
        assert "done" in {frame.event for frame in last_of(await ask_all(client, FAILURES))}
        assert {frame.event for frame in last_of(await ask_all(client, FAILURES))} == {"done"}

    in_turns(settings, {"x": fault}, test, clock=clock, llm_retry_max=2)
    assert circuit_lines(caplog) == ["model_server_down", "model_server_up"]


def test_a_connection_test_goes_past_the_pause_and_ends_it(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever repaired the server does not wait: the settings' test asks it, and after it everybody may."""
    caplog.set_level(logging.INFO)
    fault, heal = switched(FAULTS["503"], FAULTS["ok"])

    async def listed(reply: Reply) -> None:
        await (fault if reply.seen.body else FAULTS["models"])(reply)

    async def tested(client: Client) -> bool:
        report = await (await client.post("/api/settings/test", {})).json()
        return bool(report["ok"])

    async def test(client: Client, server: FaultServer) -> None:
        await dead(client, server)
        assert not await tested(client)
        assert last_of(await ask_all(client, 1))[0].event == "error"
        heal()
        asked = len(server.seen)
        assert await tested(client)
        assert len(server.seen) > asked
        assert last_of(await ask_all(client, 1))[0].event == "done"

    in_turns(settings, {"x": listed}, test)
    assert circuit_lines(caplog) == ["model_server_down", "model_server_up"]


@pytest.mark.parametrize("fault", ["400", "401", "408", "cut", "error-event", "503-loading", "html", "404-model"])
def test_a_server_that_answers_is_never_left_alone(settings: Settings, fault: str) -> None:
    """Refusals, broken replies and a model that loads are answers: each question reaches the server."""

    async def test(client: Client, server: FaultServer) -> None:
        for _ in range(2):
            await ask_all(client, FAILURES)
        assert len(server.seen) == 2 * FAILURES

    in_turns(settings, {fault: FAULTS[fault]}, test)


@pytest.mark.parametrize("fault", ["429", "500-huge", "reset-first"])
def test_five_failures_in_a_row_begin_the_pause(settings: Settings, fault: str) -> None:
    """Too busy, broken, or closing the connection: the sixth question fails at once."""

    async def test(client: Client, server: FaultServer) -> None:
        await dead(client, server)
        await ask_all(client, 1)
        assert len(server.seen) == FAILURES

    in_turns(settings, {fault: FAULTS[fault]}, test)


def test_a_reader_who_stops_the_probe_leaves_the_server_askable() -> None:
    """Stop is no word on the server: after the pause another question tries it."""

    async def test(server: FaultServer, _: ClientPool) -> None:
        clock = ShiftedClock()
        pool = ClientPool(clock)
        fault = server.endpoint("503")
        for _ in range(FAILURES):
            await collect(chat_stream_retried(fault, QUESTION, tools=None, clients=pool))
        clock.shift(PAUSE_S)
        probe = chat_stream_retried(fault, QUESTION, tools=None, clients=pool)
        waiting = asyncio.create_task(anext(probe))
        while len(server.seen) == FAILURES:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        refused = await collect(chat_stream_retried(fault, QUESTION, tools=None, clients=pool))
        assert refused.code == "llm_unavailable.circuit"
        clock.shift(PAUSE_S)
        await collect(chat_stream_retried(fault, QUESTION, tools=None, clients=pool))
        assert len(server.seen) == FAILURES + 2
        await pool.aclose()

    serve(test)


def test_while_a_probe_is_under_way_the_others_are_told_so() -> None:
    """No number that is wrong: the sentence says that the server is being tried."""

    async def test(server: FaultServer, _: ClientPool) -> None:
        clock = ShiftedClock()
        pool = ClientPool(clock)
        bad, slow = server.endpoint("503"), server.endpoint("503")
        for _ in range(FAILURES):
            await collect(chat_stream_retried(bad, QUESTION, tools=None, clients=pool))
        clock.shift(PAUSE_S)
        leave = pool.circuit(slow).enter(clock.monotonic())
        clock.shift(PAUSE_S)
        told = await collect(chat_stream_retried(bad, QUESTION, tools=None, clients=pool))
        assert told.code == "llm_unavailable.circuit_probe"
        assert not pool.circuit(slow).failed(leave, clock.monotonic())
        assert len(server.seen) == FAILURES
        await pool.aclose()

    serve(test)
    assert load_catalog().has("errors.llm_unavailable.circuit_probe")
