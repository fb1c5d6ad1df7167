"""Docent and a real model server, llama.cpp's: what no fake can tell. Nothing here depends on what the model says."""

import asyncio
import functools
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.rag.llm import chat_stream
from app.rag.pieces import StreamPiece, ToolCallPiece
from app.settings import Settings
from app.upstream.client import ClientPool, Endpoint
from tests.asgi import HOST, Client, serving
from tests.integration.turn_kit import fields, turn_lines
from tests.real_server import MODEL, RealServer, need_demo_model
from tests.scripted import ScriptedSearch, hit
from tests.sse import Frame, text_of
from tests.waiting import until

DEADLINE_S = 100
LONG_TEXT = " ".join(f"Volume {number} is copied to shelf {number * 7 % 1009}." for number in range(400))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    need_demo_model()
    with RealServer(tmp_path_factory.mktemp("demo")) as server:
        yield server
        assert server.end(signal.SIGTERM) == 0


def connected(settings: Settings, real: RealServer, **changes: Any) -> Settings:
    """Docent as an operator would set it up for a small model that is to say the same each time."""
    values = {"llm_base_url": real.url, "llm_temperature": 0.0, "llm_max_tokens": 8, "retrieval_top_k": 1, **changes}
    return settings.model_copy(update=values)


def in_docent(settings: Settings, test: Callable[[Client], Awaitable[None]], text: str | None = None) -> None:
    """Runs `test` against a Docent whose library has one passage: a short one, or `text`."""
    changes = {"text": text, "char_end": 40 + len(text)} if text else {}

    app = create_app(settings, searcher=ScriptedSearch(hit(1, **changes)))

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_S), serving(app) as client:
            await test(client)

    asyncio.run(run())


async def slots_are_free(real: RealServer) -> None:
    """Asked seldom: each question put off the server's own look at who has left, which comes once a second."""
    free = functools.partial(until, lambda: real.busy_slots() == 0, "every slot is free", 40, step_s=2)
    await anyio.to_thread.run_sync(free)


def test_a_turn_streams_and_its_line_has_the_servers_count(
    settings: Settings, real: RealServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Several deltas, `done`, and the prompt's tokens as the server counted them."""
    caplog.set_level(logging.INFO)
    seen: list[Frame] = []

    async def test(client: Client) -> None:
        seen.extend(await (await client.ask()).all_frames())

    in_docent(connected(settings, real), test)
    assert len([frame for frame in seen if frame.event == "delta"]) >= 2
    assert text_of(seen).strip()
    assert seen[-1].event == "done"
    (line,) = map(fields, turn_lines(caplog))
    assert (line["outcome"], line["mode"], line["model"], line["retries"]) == ("ok", "grounded", MODEL, "0")
    assert int(line["prompt_tokens"]) > 50
    assert line["scaffold_stripped"] == "0"


def test_stop_frees_the_slot(settings: Settings, real: RealServer) -> None:
    """The server works on the turn until Stop and on nothing soon after; the next question is answered."""

    async def test(client: Client) -> None:
        reply = await client.ask("Write down every number from one to five hundred, each on a line of its own.")
        await reply.until("delta")
        assert await anyio.to_thread.run_sync(real.busy_slots) == 1
        assert (await client.post(f"/api/turns/{reply.headers['x-turn-id']}/stop")).status == 204
        assert (await reply.all_frames())[-1].event == "stopped"
        await slots_are_free(real)

    in_docent(connected(settings, real, llm_max_tokens=2000), test)
    in_docent(connected(settings, real), _answers)


def test_a_cold_start_that_takes_too_long_is_told_and_leaves_nothing_behind(
    settings: Settings, real: RealServer
) -> None:
    """The server's pings while it reads the prompt are no first token; its slot is free for the next turn."""

    async def test(client: Client) -> None:
        frames = await (await client.ask()).all_frames()
        assert (frames[-1].event, frames[-1].data["code"]) == ("error", "llm_timeout")
        assert not text_of(frames)
        await slots_are_free(real)

    in_docent(connected(settings, real, llm_first_token_s=0.2), test, LONG_TEXT)
    in_docent(connected(settings, real), _answers)


async def _answers(client: Client) -> None:
    assert (await (await client.ask(client_key="the next one")).all_frames())[-1].event == "done"


def test_the_settings_page_finds_the_server_and_its_model(settings: Settings, real: RealServer) -> None:
    """Found on its port, known as llama.cpp, with its window; the test of the connection gets a word."""
    with TestClient(create_app(settings, discovery_ports=(real.port,)), base_url=f"http://{HOST}") as client:
        (found,) = client.get("/api/settings/discover").json()["servers"]
        assert (found["base_url"], found["kind"], found["models"]) == (
            f"http://localhost:{real.port}/v1",
            "llama.cpp",
            1,
        )
        report = client.post("/api/settings/test", json={"llm_base_url": found["base_url"]}).json()
        assert report["ok"], report
        assert (report["models"], report["window"], report["streaming"]) == ([MODEL], 8192, True)
        assert client.put("/api/settings", json={"llm_base_url": found["base_url"]}).status_code == 200
        assert client.get("/api/settings/models").json()["models"] == [MODEL]


def test_tools_are_taken_and_end_in_an_answer(real: RealServer) -> None:
    """A model without tools answers in words, one with them calls; either way the reply ends properly."""
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tool = {"type": "function", "function": {"name": "search", "description": "Looks it up.", "parameters": parameters}}
    pieces: list[StreamPiece | ToolCallPiece] = []

    async def ask() -> None:
        pool = ClientPool()
        endpoint = Endpoint(real.url, temperature=0.0, max_tokens=8)
        question = [{"role": "user", "content": "How often are backups made?"}]
        try:
            pieces.extend([piece async for piece in chat_stream(endpoint, question, tools=[tool], clients=pool)])
        finally:
            await pool.aclose()

    asyncio.run(asyncio.wait_for(ask(), DEADLINE_S))
    assert any(isinstance(piece, ToolCallPiece) or piece.kind == "content" for piece in pieces[:-1])
    usage = pieces[-1]
    assert isinstance(usage, StreamPiece)
    assert usage.kind == "usage"
    assert usage.data["finish_reason"] in ("stop", "length", "tool_calls")


def test_the_demo_model_says_where_it_is_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    """One line with the address to enter; exit code 0."""
    need_demo_model()
    with RealServer(tmp_path) as server:
        assert server.said.strip().count("\n") == 0, server.said
        assert f"Put {server.url} into Settings → Model." in server.said
        assert server.end(signal.SIGINT) == 0
