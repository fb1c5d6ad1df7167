"""Bodies that are left half read are closed by whoever leaves them, not by the garbage collector.

The collector comes upon a generator whenever, and in whatever thread: under load when its loop has ended, and then it
never gets to close anything. What the client library leaves inside its own bodies is freed with them, within the loop.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from app.rag.llm import chat_stream
from app.upstream.client import BODY_LIMIT, ClientPool, fetch
from app.upstream.probe import test_connection as probe
from tests.asking import QUESTION, collect
from tests.fault_server import FaultServer, Reply, fault_server

PAGE = b"<!doctype html><title>Log in</title>"


async def page_without_end(reply: Reply) -> None:
    """A model list, and a web page whose body goes on for whoever asks a question."""
    if not reply.seen.body:
        await reply.json("200 OK", {"object": "list", "data": [{"id": "m"}]})
        return
    await reply.head(kind="text/html")
    await reply.send(PAGE)
    await reply.until_closed()


async def list_without_end(reply: Reply) -> None:
    """A model list, then one byte more than is read."""
    await reply.head(kind="application/json")
    await reply.send(b" " * BODY_LIMIT, b" ")
    await reply.until_closed()


def left_open(use: Callable[[FaultServer, ClientPool], Awaitable[Any]]) -> list[str]:
    """The names of the responses' generators that were begun and are not finished after `use`."""
    begun: list[AsyncGenerator[Any, Any]] = []
    left: list[str] = []

    async def run() -> None:
        hooks = sys.get_asyncgen_hooks()

        def begins(generator: AsyncGenerator[Any, Any]) -> None:
            begun.append(generator)
            hooks.firstiter(generator)

        async with fault_server({"page": page_without_end, "list": list_without_end}) as server:
            pool = ClientPool()
            sys.set_asyncgen_hooks(firstiter=begins)
            await use(server, pool)
            names = [one.__qualname__ for one in begun if one.ag_frame is not None]
            left.extend(name for name in names if name.startswith("Response."))
            await pool.aclose()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert "Response.aiter_bytes" in [one.__qualname__ for one in begun]
    return left


def test_a_reply_that_is_a_web_page() -> None:
    """It is refused at its first bytes."""

    async def use(server: FaultServer, pool: ClientPool) -> None:
        outcome = await collect(chat_stream(server.endpoint("page"), QUESTION, tools=None, clients=pool))
        assert outcome.code == "llm_rejected.html"

    assert left_open(use) == []


def test_a_connection_test_that_meets_a_web_page() -> None:
    """Once it has seen what that is, it reads no further."""

    async def use(server: FaultServer, _: ClientPool) -> None:
        failure = (await probe(server.endpoint("page"))).failure
        assert failure is not None
        assert failure.reason == "html"

    assert left_open(use) == []


def test_a_list_that_is_longer_than_what_is_read() -> None:
    """Only so much of it is read."""

    async def use(server: FaultServer, pool: ClientPool) -> None:
        endpoint = server.endpoint("list")
        _, body = await fetch(await pool.http(endpoint), "GET", f"{endpoint.base_url}/models")
        assert len(body) == BODY_LIMIT

    assert left_open(use) == []
