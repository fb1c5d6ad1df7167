"""The window of a turn: looked up while the library is searched, and what the turn's reported tokens say of it.

Used by `app.api.run_turn`. Which window counts is `app.upstream.window`'s, the room in it `app.rag.space`'s.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio.to_thread

from app.edge.deps import Services
from app.edge.servers import forget_server
from app.rag.errors import LLMError
from app.rag.space import Cut, Space, read_back, space_of
from app.rag.tokens import Reading
from app.settings import Settings
from app.upstream.client import Endpoint, endpoint_from
from app.upstream.window import Window


class TurnWindow:
    """The window of one turn's model. Made when the turn begins: the server is asked from then on."""

    def __init__(self, services: Services, settings: Settings) -> None:
        self._services = services
        self._windows = services.windows
        self._settings = settings
        self._endpoint: Endpoint | None = endpoint_from(settings)
        self._window = Window()
        self._cut: Cut | None = None
        services.windows.look(self._endpoint)

    async def space(self) -> Space:
        """The room the turn's prompt has; waits for the server's word once, at most a second."""
        self._window = await self._windows.window(self._endpoint, self._settings.llm_context_tokens)
        return space_of(self._settings, self._window)

    def facts(self) -> Mapping[str, Any]:
        """What the receipt keeps: where the window comes from, what the server says, and what it cut."""
        window = self._window
        facts: dict[str, Any] = {"window_source": window.source, "window_said": window.said, "server": window.kind}
        return facts if self._cut is None else {**facts, "cut": {"read": self._cut.read, "sent": self._cut.sent}}

    async def compare(self, readings: list[Reading]) -> bool:
        """Holds what the server counted against what was sent, and learns from it for the turns to come. Says whether
        the server left out a part."""
        if self._endpoint is None:
            return False
        known = self._windows.known(self._endpoint, self._settings.llm_context_tokens)  # it may have answered since
        self._window = replace(self._window, said=known.said, kind=known.kind)
        found = await anyio.to_thread.run_sync(read_back, readings, self._window)
        if found.rate is not None:
            self._windows.counted(self._endpoint, found.rate)
        if found.cut is not None:
            self._windows.cut(self._endpoint, read=found.cut.read, sent=found.cut.sent)
        self._cut = found.cut
        return found.cut is not None

    def overflowed(self) -> None:
        """The server refused the prompt as too long."""
        if self._endpoint is not None:
            self._windows.overflowed(self._endpoint)

    def failed(self, error: LLMError) -> None:
        """The turn failed: a server that is gone may come back as another."""
        if self._endpoint is not None and (error.code == "llm_unavailable" or error.reason == "model"):
            forget_server(self._services, self._endpoint)
