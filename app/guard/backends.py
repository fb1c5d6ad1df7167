"""The environment of a model server: asked once in a while, kept, never waited for.

The first requests after a start are counted under what is known then; from the moment the server has said what it is,
under that. Belongs to one event loop. `app.upstream.builds` knows what to ask.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from app.clock import Clock
from app.store.loop_guard_log import Environment
from app.upstream.builds import ServerBuild, server_build
from app.upstream.client import ClientPool, Endpoint

REFRESH_S = 300.0
"""How old the facts may get before the server is asked again: it may have been upgraded."""

PROBE_S = 5.0
SERVERS = 64
"""Servers and models that are remembered."""

Probe = Callable[[Endpoint, str | None], Awaitable[ServerBuild]]


class Backends:
    """What is known of each server and model."""

    def __init__(self, probe: Probe, clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._known: dict[tuple[str, str | None], ServerBuild] = {}
        self._asked_at: dict[tuple[str, str | None], float] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def environment(self, base: Environment, endpoint: Endpoint | None, model: str | None) -> Environment:
        """`base` with what is known of the server by now; asks it in the background where that is nothing or old.

        Without an endpoint the built-in answerer decides what is said, and its build is Docent's.
        """
        if endpoint is None:
            return replace(base, backend="builtin", backend_build=base.app_version)
        key = (endpoint.base_url, model)
        now = self._clock.monotonic()
        if now - self._asked_at.get(key, now - REFRESH_S) >= REFRESH_S:
            self._ask(key, endpoint, model, now)
        build = self._known.get(key, ServerBuild())
        return replace(
            base,
            backend=build.backend,
            backend_build=build.build,
            model_digest=build.model_digest,
            quant=build.quant,
            template_hash=build.template_hash,
        )

    def forget(self, endpoint: Endpoint) -> None:
        """Has the server asked again with the next request: the connection to it was lost, so it may be another."""
        for key in [key for key in self._asked_at if key[0] == endpoint.base_url]:
            del self._asked_at[key]

    async def aclose(self) -> None:
        """Ends what is still being asked."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    def _ask(self, key: tuple[str, str | None], endpoint: Endpoint, model: str | None, now: float) -> None:
        if len(self._asked_at) >= SERVERS and key not in self._asked_at:
            oldest = min(self._asked_at, key=self._asked_at.__getitem__)
            del self._asked_at[oldest]
            self._known.pop(oldest, None)
        self._asked_at[key] = now

        async def ask() -> None:
            try:
                async with asyncio.timeout(PROBE_S):
                    build = await self._probe(endpoint, model)
            except TimeoutError:
                return
            if build.backend is not None or key not in self._known:
                self._known[key] = build

        task = asyncio.create_task(ask(), name="guard-backend")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)


def probe_with(clients: ClientPool) -> Probe:
    """A probe that uses the pool's connections."""

    async def probe(endpoint: Endpoint, model: str | None) -> ServerBuild:
        return await server_build(await clients.http(endpoint), endpoint, model)

    return probe
