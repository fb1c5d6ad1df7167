"""Asking real sockets for a model's window: each kind of server by its own routes, once, and never waited for long."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from app.upstream.circuit import FAILURES
from app.upstream.client import ClientPool, Endpoint
from app.upstream.window import Said, Window
from app.upstream.windows import REFRESH_S, SERVERS, WAIT_S, Windows
from tests.route_server import CHAT, LLAMA_CPP, LM_STUDIO, OLLAMA, STREAM, VLLM, Answer, Running, listing, routes
from tests.shifted_clock import ShiftedClock

SHOWN = {"POST /api/show": Answer({"parameters": "stop x\nnum_ctx    2048", "model_info": {"llama.context_length": 1}})}
UNLOADED = {"data": [{"id": "a", "state": "not-loaded", "max_context_length": 32768}]}
ROUTER = {
    **LLAMA_CPP,
    "GET /v1/models": listing("org/a b"),
    "GET /props": Answer({"role": "router", "default_generation_settings": {"params": {}, "n_ctx": 0}}),
    "GET /props?model=org%2Fa%20b&autoload=false": Answer({"default_generation_settings": {"n_ctx": 12000}}),
}


def asked(table: dict[str, Answer], model: str | None = None, setting: int | None = None) -> tuple[Window, Running]:
    async def run() -> Window:
        clients = ClientPool()
        windows = Windows(clients, clients.clock)
        try:
            endpoint = Endpoint(f"{server.url}/v1", model=model)
            await windows.window(endpoint, setting)
            await asyncio.gather(*[task for task in asyncio.all_tasks() if task.get_name() == "window"])
            return await windows.window(endpoint, setting)
        finally:
            await windows.aclose()
            await clients.aclose()

    with routes(table) as server:
        return asyncio.run(asyncio.wait_for(run(), 20)), server


@pytest.mark.parametrize(
    ("table", "model", "expected"),
    [
        (OLLAMA, "qwen3:8b", (8192, "server", "Ollama")),
        (OLLAMA, None, (8192, "server", "Ollama")),
        ({**OLLAMA, "GET /api/ps": Answer({"models": []})}, "qwen3:8b", (4096, "assumed", "Ollama")),
        ({**OLLAMA, **SHOWN, "GET /api/ps": Answer({"models": []})}, "qwen3:8b", (2048, "server", "Ollama")),
        (
            {**OLLAMA, "GET /api/ps": Answer({"models": [{"name": "llama3.2:latest", "context_length": 32768}]})},
            "llama3.2",
            (32768, "server", "Ollama"),
        ),
        (LLAMA_CPP, None, (16384, "server", "llama.cpp")),
        (ROUTER, "org/a b", (12000, "server", "llama.cpp")),
        (LM_STUDIO, "a", (4096, "server", "LM Studio")),
        ({**LM_STUDIO, "GET /api/v0/models": Answer(UNLOADED)}, "a", (4096, "assumed", "LM Studio")),
        (VLLM, "org/model", (12288, "server", "vLLM")),
        ({"GET /v1/models": listing("x", context_window=131072)}, "x", (131072, "server", "")),
        ({"GET /v1/models": listing("x"), CHAT: STREAM}, "x", (8192, "default", "")),
        ({}, "x", (8192, "default", "")),
        ({}, None, (8192, "default", "")),
    ],
)
def test_each_server_is_asked_in_its_own_way(
    table: dict[str, Answer], model: str | None, expected: tuple[int, str, str]
) -> None:
    """What runs counts, not what the model could take; nothing is loaded for it."""
    window, server = asked(table, model)
    assert (window.tokens, window.source, window.kind) == expected
    assert server.asked(CHAT) == []


def test_a_setting_is_not_kept_waiting() -> None:
    """The server is asked all the same, for the sentence that it has less."""
    window, _ = asked(OLLAMA, "qwen3:8b", setting=16384)
    assert (window.tokens, window.source) == (16384, "setting")


class Probes:
    """A probe that answers what it is told, or waits."""

    def __init__(self, *answers: Said | Callable[[], Awaitable[Said]]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, endpoint: Endpoint, model: str | None) -> Said:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return answer if isinstance(answer, Said) else await answer()


async def never() -> Said:
    await asyncio.Event().wait()
    raise AssertionError


AT = Endpoint("http://model.test/v1", model="m")


def playing(probes: Probes, test: Callable[[Windows, ClientPool, ShiftedClock], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = ShiftedClock()
        clients = ClientPool(clock)
        windows = Windows(clients, clock, probes)
        try:
            await test(windows, clients, clock)
        finally:
            await windows.aclose()

    asyncio.run(asyncio.wait_for(run(), 20))


async def settled(windows: Windows) -> int:
    """The window once what is being asked has answered."""
    for _ in range(5):
        await asyncio.sleep(0)
    return (await windows.window(AT, None)).tokens


def test_a_server_that_hangs_costs_the_first_turn_a_second_and_the_next_nothing_more() -> None:
    """Until it answers, 8,192 is taken."""
    probes = Probes(never)

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        began = time.monotonic()
        assert (await windows.window(AT, None)).source == "default"
        assert time.monotonic() - began < WAIT_S + 1
        assert (await windows.window(AT, 4096)).tokens == 4096
        assert probes.asked == 1

    playing(probes, test)


def test_an_answer_is_kept_and_asked_for_again_in_the_background() -> None:
    """A turn takes what is known; a server that says nothing any more changes nothing."""
    probes = Probes(Said(4096), Said(16384), Said())

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        assert (await windows.window(AT, None)).tokens == 4096
        assert await settled(windows) == 4096
        assert probes.asked == 1
        clock.shift(REFRESH_S)
        assert (await windows.window(AT, None)).tokens == 4096
        assert await settled(windows) == 16384
        clock.shift(REFRESH_S)
        windows.look(AT)
        assert await settled(windows) == 16384
        assert probes.asked == 3

    playing(probes, test)


def test_a_lost_connection_forgets_the_window_of_every_model_there() -> None:
    """Another server may answer at the address."""
    probes = Probes(Said(4096), Said(16384))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        assert (await windows.window(AT, None)).tokens == 4096
        windows.forget(AT)
        assert (await windows.window(AT, None)).tokens == 16384

    playing(probes, test)


def test_a_cut_asks_the_server_again_and_counts_for_the_next_turn() -> None:
    """What was read is the window until the server says what explains it."""
    probes = Probes(Said(), Said(4096))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        assert (await windows.window(AT, None)).tokens == 8192
        windows.cut(AT, read=2050, sent=6100)
        assert (await windows.window(AT, 16384)) == Window(2050, "learned")
        assert await settled(windows) == 4096

    playing(probes, test)


def test_a_turn_on_a_model_that_was_not_loaded_asks_what_it_runs_with_now() -> None:
    """The first answer loads it."""
    probes = Probes(Said(4096, in_effect=False), Said(32768))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        assert (await windows.window(AT, None)).source == "assumed"
        windows.counted(AT, 1.2)
        assert await settled(windows) == 32768
        assert (await windows.window(AT, None)).rate == 1.2
        windows.counted(AT, 1.1)
        assert probes.asked == 2
        windows.overflowed(AT)
        await settled(windows)
        assert probes.asked == 3

    playing(probes, test)


def test_a_server_that_is_being_left_alone_is_not_asked() -> None:
    """The window can wait as well."""
    probes = Probes(Said(4096))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        circuit = clients.circuit(AT)
        for _ in range(FAILURES):
            circuit.failed(circuit.enter(clock.monotonic()), clock.monotonic())
        assert (await windows.window(AT, None)).source == "default"
        assert probes.asked == 0

    playing(probes, test)


def test_a_bounded_number_of_servers_is_remembered() -> None:
    """Somebody may try one name after the other."""
    probes = Probes(Said(4096))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        for number in range(SERVERS + 1):
            await windows.window(Endpoint("http://model.test/v1", model=f"m{number}"), None)
        asked_before = probes.asked
        await windows.window(Endpoint("http://model.test/v1", model=f"m{SERVERS}"), None)
        assert probes.asked == asked_before
        await windows.window(Endpoint("http://model.test/v1", model="m0"), None)
        assert probes.asked == asked_before + 1

    playing(probes, test)


def test_without_a_server_the_window_is_the_setting_or_the_default() -> None:
    """The built-in answerer has no window of its own."""
    probes = Probes(Said(4096))

    async def test(windows: Windows, clients: ClientPool, clock: ShiftedClock) -> None:
        assert await windows.window(None, None) == Window()
        assert (await windows.window(None, 1024)).tokens == 1024
        assert probes.asked == 0

    playing(probes, test)
