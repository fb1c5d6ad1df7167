"""The environment of a model server in the loop guard's log: what the server says, and None for the rest."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI

from app.guard.backends import REFRESH_S, Backends, probe_with
from app.main import create_app
from app.settings import Settings
from app.store.loop_guard_log import Environment
from app.upstream.builds import ServerBuild, server_build
from app.upstream.client import ClientPool, Endpoint
from tests.asgi import Client, in_app
from tests.integration.guard_log_kit import FixedClock
from tests.route_server import CHAT, LLAMA_CPP, LM_STUDIO, OLLAMA, STREAM, VLLM, Answer, routes

BASE = Environment(strikes=2)
SERVER = Endpoint("http://127.0.0.1:1/v1")


def build_of(table: dict[str, Answer], model: str | None = "qwen3:8b") -> ServerBuild:
    """What the probe finds at a server with these routes."""

    async def run(url: str) -> ServerBuild:
        pool = ClientPool()
        try:
            return await probe_with(pool)(Endpoint(f"{url}/v1"), model)
        finally:
            await pool.aclose()

    with routes(table) as server:
        return asyncio.run(run(server.url))


def test_ollama_names_its_version_and_the_models_digest() -> None:
    """And quantisation and template, by a hash."""
    row = {"name": "qwen3:8b", "digest": "sha256:500a1f", "details": {"quantization_level": "Q4_K_M"}}
    tags = Answer({"models": [{"name": "other"}, "junk", row]})
    shown = Answer({"template": "{{ .Prompt }}"})
    found = build_of({**OLLAMA, "GET /api/tags": tags, "POST /api/show": shown})
    assert (found.backend, found.build, found.model_digest, found.quant) == (
        "Ollama",
        "0.12.6",
        "sha256:500a1f",
        "Q4_K_M",
    )
    assert len(found.template_hash or "") == 16
    assert build_of(OLLAMA) == ServerBuild("Ollama", "0.12.6")
    assert build_of(OLLAMA, None) == ServerBuild("Ollama", "0.12.6")


def test_llama_cpp_is_known_by_its_build_and_by_its_file(tmp_path: Path) -> None:
    """A file on this machine that was replaced under the same name is another model."""
    file = tmp_path / "Qwen3-8B-Q4_K_M.gguf"
    file.write_bytes(b"weights")
    props = {**LLAMA_CPP["GET /props"].body, "model_path": str(file), "chat_template": "{{ messages }}"}
    table = {**LLAMA_CPP, "GET /props": Answer(props)}
    first = build_of(table)
    assert (first.backend, first.build, first.quant) == ("llama.cpp", "b6700-abc", "Q4_K_M")
    assert len(first.template_hash or "") == len(first.model_digest or "") == 16
    assert build_of(table) == first
    os.utime(file, (1, 1))
    assert build_of(table).model_digest != first.model_digest
    file.unlink()
    assert build_of(table).model_digest is not None
    assert build_of(LLAMA_CPP) == ServerBuild("llama.cpp", "b6700-abc")


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (VLLM, ServerBuild("vLLM", "0.11.0")),
        (LM_STUDIO, ServerBuild()),
        ({}, ServerBuild()),
        ({"GET /api/version": Answer({"version": ["x"] * 9})}, ServerBuild("Ollama")),
        ({"GET /api/version": Answer({"version": "x" * 500})}, ServerBuild("Ollama")),
    ],
)
def test_what_a_server_does_not_say_is_not_known(table: dict[str, Answer], found: ServerBuild) -> None:
    """Other kinds, no routes at all, and nonsense where a version should be."""
    assert build_of(table) == found


def test_the_first_request_does_not_wait_and_the_later_ones_know() -> None:
    """Asked once until the facts are old, or the connection was lost; another build is another environment."""

    async def run() -> None:
        asked: list[str | None] = []
        builds = ["b1", "b2", None]

        async def probe(endpoint: Endpoint, model: str | None) -> ServerBuild:
            asked.append(model)
            build = builds[min(len(asked), len(builds)) - 1]
            return ServerBuild("llama.cpp", build) if build else ServerBuild()

        clock = FixedClock()
        backends = Backends(probe, clock)
        assert backends.environment(BASE, SERVER, "m") == BASE
        await settle()
        known = backends.environment(BASE, SERVER, "m")
        assert known == replace(BASE, backend="llama.cpp", backend_build="b1")
        assert backends.environment(BASE, SERVER, "m") == known
        clock.passed += REFRESH_S
        backends.environment(BASE, SERVER, "m")
        await settle()
        assert backends.environment(BASE, SERVER, "m").backend_build == "b2"
        backends.forget(SERVER)
        backends.environment(BASE, SERVER, "m")
        await settle()
        assert backends.environment(BASE, SERVER, "m").backend_build == "b2"
        assert asked == ["m", "m", "m"]
        await backends.aclose()

    asyncio.run(run())


async def settle() -> None:
    """Lets tasks that wait for nothing end."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_built_in_answerer_has_docents_own_build() -> None:
    """There is no server to ask."""

    async def never(endpoint: Endpoint, model: str | None) -> ServerBuild:
        raise AssertionError("asked")

    facts = Backends(never, FixedClock()).environment(BASE, None, None)
    assert (facts.backend, facts.backend_build) == ("builtin", BASE.app_version)


def test_a_server_that_hangs_is_given_up_at_the_end_and_few_are_remembered() -> None:
    """Closing ends what is still being asked."""

    async def run() -> None:
        begun: list[str] = []

        async def hang(endpoint: Endpoint, model: str | None) -> ServerBuild:
            begun.append(endpoint.base_url)
            await asyncio.Event().wait()
            return ServerBuild()

        clock = FixedClock()
        backends = Backends(hang, clock)
        for number in range(70):
            clock.passed += 1
            assert backends.environment(BASE, Endpoint(f"http://h{number}/v1"), None) == BASE
        await settle()
        assert len(begun) == 70
        await asyncio.wait_for(backends.aclose(), 5)

    asyncio.run(run())


def test_an_unreachable_server_is_not_known() -> None:
    """The same as one that says nothing; no error reaches the request."""

    async def run() -> ServerBuild:
        pool = ClientPool()
        try:
            return await server_build(await pool.http(SERVER), SERVER, "m")
        finally:
            await pool.aclose()

    assert asyncio.run(run()) == ServerBuild()


async def ask_a_question(client: Client) -> None:
    """A turn, which finds nobody there."""
    frames = await (await client.ask()).all_frames()
    assert frames[-1].data["code"] == "llm_unavailable"


async def ask_through_the_proxy(client: Client) -> None:
    """Another program's request, which finds nobody there."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
    assert (await client.post("/v1/chat/completions", body)).status == 502


@pytest.mark.parametrize("lost", [ask_a_question, ask_through_the_proxy])
def test_a_server_that_was_lost_is_asked_again(settings: Settings, lost: Callable[[Client], Awaitable[None]]) -> None:
    """What answers next may be another; as long as it answers, it is not asked twice."""
    with routes(LLAMA_CPP) as server:
        endpoint = Endpoint(f"{server.url}/v1")
    values = {"llm_base_url": endpoint.base_url, "llm_model": "m", "llm_retry_max": 0}
    app = create_app(settings.model_copy(update=values))

    async def test(client: Client) -> None:
        assert asks(app, endpoint) == 1
        assert asks(app, endpoint) == 0
        await lost(client)
        assert asks(app, endpoint) == 1

    in_app(app, test)


def test_a_connection_test_has_the_server_asked_again(settings: Settings) -> None:
    """Whoever upgraded the server tests it; the log counts under the new build from then on."""
    with routes({**LLAMA_CPP, CHAT: STREAM}) as server:
        endpoint = Endpoint(f"{server.url}/v1")
        app = create_app(settings.model_copy(update={"llm_base_url": endpoint.base_url, "llm_model": "m"}))

        async def test(client: Client) -> None:
            assert [asks(app, endpoint), asks(app, endpoint)] == [1, 0]
            assert (await (await client.post("/api/settings/test", {})).json())["ok"] is True
            assert asks(app, endpoint) == 1

        in_app(app, test)


def asks(app: FastAPI, endpoint: Endpoint) -> int:
    """How often a request now has the server asked what it is."""

    def asking() -> set[asyncio.Task[None]]:
        return {task for task in asyncio.all_tasks() if task.get_name() == "guard-backend"}

    before = asking()
    app.state.docent.guard_backends.environment(BASE, endpoint, "m")
    return len(asking() - before)
