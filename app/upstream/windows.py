"""The windows of model servers: asked in the background, kept, waited for only by the first turn and not for long.

Owns when a server is asked (again) and what is remembered of it. Belongs to one event loop. Which routes tell, knows
`app.upstream.identify`; which word counts, `app.upstream.window`. Used by `app.api`'s turns through `Services`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from app.clock import Clock
from app.upstream.client import ClientPool, Endpoint
from app.upstream.exchange import resolve_model
from app.upstream.failures import UpstreamError
from app.upstream.identify import window_said
from app.upstream.window import Learned, Said, Window, window_of

WAIT_S = 1.0
"""How long the first turn of a server waits for its word."""

PROBE_S = 5.0
REFRESH_S = 300.0
"""How old an answer may get: a model is unloaded when nobody asks, and loaded again with another window."""

SERVERS = 64
"""Servers and models that are remembered."""

Probe = Callable[[Endpoint, str | None], Awaitable[Said]]
_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Known:
    """What is kept of one model on one server."""

    said: Said = field(default_factory=Said)
    learned: Learned = field(default_factory=Learned)
    asked_at: float | None = None
    asking: asyncio.Task[None] | None = None


class Windows:
    """What is known of each server and model.

    Args:
        probe: Asks a server; may take its time, must not raise but for a time-out.
    """

    def __init__(self, clients: ClientPool, clock: Clock, probe: Probe | None = None) -> None:
        self._clients = clients
        self._clock = clock
        self._probe = probe or probe_with(clients)
        self._known: dict[_Key, _Known] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def look(self, endpoint: Endpoint | None) -> None:
        """Has the server asked in the background where nothing is known of it, or only something old; not while it is
        being left alone."""
        if endpoint is None or self._clients.circuit(endpoint).is_open:
            return
        known, now = self._of(endpoint), self._clock.monotonic()
        if known.asking is None and (known.asked_at is None or now - known.asked_at >= REFRESH_S):
            known.asked_at = now
            known.asking = asyncio.create_task(self._ask(endpoint, known), name="window")
            self._asking.add(known.asking)
            known.asking.add_done_callback(self._asking.discard)

    async def window(self, endpoint: Endpoint | None, setting: int | None) -> Window:
        """The window to pack for; `setting` is LLM_CONTEXT_TOKENS. Waits at most a second, and only for the first word
        of a server of which nothing is known and nothing is set."""
        if endpoint is None:
            return window_of(setting, Said(), Learned(), 0.0)
        self.look(endpoint)
        known = self._of(endpoint)
        if known.asking is not None and setting is None and known.said.tokens is None:
            await asyncio.wait({known.asking}, timeout=WAIT_S)
        return self.known(endpoint, setting)

    def known(self, endpoint: Endpoint, setting: int | None) -> Window:
        """The window as far as it is known now."""
        known = self._of(endpoint)
        return window_of(setting, known.said, known.learned, self._clock.monotonic())

    def counted(self, endpoint: Endpoint, rate: float) -> None:
        """A whole prompt was `rate` times as many tokens as estimated. A server that had not loaded the model before
        has now: it is asked again."""
        known = self._of(endpoint)
        known.learned.counted(rate)
        if not known.said.in_effect:
            self._again(known, endpoint)

    def cut(self, endpoint: Endpoint, *, read: int, sent: int) -> None:
        """The server read `read` of about `sent` tokens: counts for the turns after this one; the server is asked
        again for its own word."""
        known = self._of(endpoint)
        known.learned.cut(read=read, sent=sent, now=self._clock.monotonic())
        self._again(known, endpoint)

    def overflowed(self, endpoint: Endpoint) -> None:
        """The server refused a prompt as too long: what is known of its window may be old."""
        self._again(self._of(endpoint), endpoint)

    def forget(self, endpoint: Endpoint) -> None:
        """The connection was lost, or the model is another: nothing learned counts any more."""
        for key in [key for key in self._known if key[0] == endpoint.base_url]:
            del self._known[key]

    async def aclose(self) -> None:
        """Ends what is still being asked."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    def _again(self, known: _Known, endpoint: Endpoint) -> None:
        known.asked_at = None
        self.look(endpoint)

    def _of(self, endpoint: Endpoint) -> _Known:
        key = (endpoint.base_url, self._clients.known_model(endpoint))
        if key not in self._known and len(self._known) >= SERVERS:
            self._known.pop(next(iter(self._known)))
        return self._known.setdefault(key, _Known())

    async def _ask(self, endpoint: Endpoint, known: _Known) -> None:
        """Asks once. A server whose first model was looked up for it is known under that model from now on."""
        try:
            async with asyncio.timeout(PROBE_S):
                said = await self._probe(endpoint, self._clients.known_model(endpoint))
        except TimeoutError:
            return
        finally:
            known.asking = None
        if said.tokens is not None or known.said.tokens is None:
            known.said = said
        named = self._of(endpoint)
        named.said, named.asked_at = known.said, known.asked_at


def probe_with(clients: ClientPool) -> Probe:
    """A probe that uses the pool's connections, and its knowledge of a server's first model."""

    async def probe(endpoint: Endpoint, model: str | None) -> Said:
        try:
            name = model or await resolve_model(clients, endpoint)
        except UpstreamError:
            return Said()
        return await window_said(await clients.http(endpoint), endpoint, name)

    return probe
