"""Whole turns against a model server that misbehaves: the application and the server in the test's own loop."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from app.clock import Clock
from app.main import create_app
from app.settings import Settings
from tests.asgi import Client, serving
from tests.fault_server import PROBED_BY_TURNS, Fault, FaultServer, Reply, fault_server
from tests.scripted import ScriptedSearch, hit
from tests.sse import Frame

Test = Callable[[Client, FaultServer], Awaitable[None]]


def in_turns(
    settings: Settings,
    faults: Mapping[str, Fault],
    test: Test,
    *,
    clock: Clock | None = None,
    within_s: float = 60,
    **changes: Any,
) -> None:
    """Runs a test against Docent connected to the first of `faults`; `changes` are settings."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base_url = FaultServer(listening.getsockname()[1]).endpoint(next(iter(faults))).base_url
        values = {"llm_base_url": base_url, "llm_model": "m", "llm_retry_max": 0, **changes}
        app = create_app(settings.model_copy(update=values), clock=clock, searcher=ScriptedSearch(hit(1)))

        async def run() -> None:
            async with (
                asyncio.timeout(within_s),
                fault_server(faults, listening, PROBED_BY_TURNS) as server,
                serving(app) as client,
            ):
                await test(client, server)

        asyncio.run(run())


async def ask_all(client: Client, count: int) -> list[list[Frame]]:
    """So many questions at once, in chats of their own; the frames of each."""

    async def one() -> list[Frame]:
        return await (await client.ask()).all_frames()

    return await asyncio.gather(*[one() for _ in range(count)])


def switched(bad: Fault, good: Fault) -> tuple[Fault, Callable[[], None]]:
    """A server that misbehaves until the second value is called."""
    healed: list[bool] = []

    async def serve(reply: Reply) -> None:
        await (good if healed else bad)(reply)

    return serve, lambda: healed.append(True)
