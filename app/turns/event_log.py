"""The events of one turn, in memory: append, replay, follow.

Every watcher reads the same list from its own position, so a slow one costs no memory: it is only behind. A watcher
that takes nothing at all is dropped by the response that feeds it (`app.api.stream`) and replays when it comes back.
Used from the event loop only. Knows no frame; `app.turns.registry` decides how long a log is kept.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `id` counts 1, 2, 3… per turn."""

    id: int
    event: str
    data: Mapping[str, Any]


class EventLog:
    """All events of one turn. `close` comes after the last one."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._closed = False
        self._news = asyncio.Event()

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    @property
    def last(self) -> Event | None:
        """The newest event."""
        return self._events[-1] if self._events else None

    def append(self, event: str, data: Mapping[str, Any]) -> int:
        """Adds an event, wakes the watchers and gives the event's id.

        Raises:
            RuntimeError: when the log is closed; a late event would reach some watchers and not others.
        """
        if self._closed:
            raise RuntimeError("the event log is closed")
        self._events.append(Event(len(self._events) + 1, event, data))
        self._wake()
        return len(self._events)

    def close(self) -> None:
        """Ends every watcher once it has seen all events. Safe to call twice."""
        self._closed = True
        self._wake()

    async def follow(self, after: int = 0) -> AsyncGenerator[Event]:
        """Events with an id above `after`: those that are there, then those to come, until the log is closed.

        An `after` beyond the newest id waits for what comes next.
        """
        position = max(0, after)
        while True:
            while position < len(self._events):
                position += 1
                yield self._events[position - 1]
            if self._closed:
                return
            await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
