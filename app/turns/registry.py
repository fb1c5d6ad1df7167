"""Turns as tasks of the server: start, watch, stop, end all.

A turn lives on its own; a response only watches its event log. What ends one early is Stop, the shutdown, the total
clock, or (where an operator wants it) the time since the last watcher left. The body is handed in by `app.api`, which
settles the turn itself; nothing here knows frames, rows or models. Used from the event loop only.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager
from typing import Literal

from app.errors import AppError
from app.logs import kv, turn_id_var
from app.turns.event_log import Event, EventLog

StopReason = Literal["stop", "shutdown", "detach", "total"]
TurnBody = Callable[["TurnScope"], Awaitable[None]]

KEEP_S = 300.0
"""How long the events of an ended turn can be replayed."""
SHUTDOWN_S = 4.0
"""What turns get to settle when the server ends; the server itself has to be gone within 5 s."""

STARTING_S = 0.5
"""How long a turn counts as one that has just begun: its search and the way to the model. Also one that has ended by
then: whoever is answered that quickly may ask again as quickly."""

_log = logging.getLogger(__name__)


class ShuttingDownError(AppError):
    """The server is ending and takes no new turn."""

    status = 503
    default_code = "shutting_down"


class TurnScope:
    """One turn's life: its log, whose it is (None: nobody's), and why it was told to end (None: it was not)."""

    def __init__(self, turn_id: str, owner: int | None = None) -> None:
        self.turn_id = turn_id
        self.owner = owner
        self.log = EventLog()
        self.stop_reason: StopReason | None = None


class _Entry:
    """A turn in the registry: its scope, task, watchers and timers."""

    def __init__(self, scope: TurnScope) -> None:
        self.scope = scope
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        self.watchers = 0
        self.detach: asyncio.TimerHandle | None = None

    def cancel_detach(self) -> None:
        """Stops the countdown that runs while nobody watches."""
        if self.detach is not None:
            self.detach.cancel()
            self.detach = None


class TurnRegistry:
    """All turns of this process that run or can still be replayed.

    Args:
        detach_grace_s: Seconds without a watcher after which a turn is stopped; None means never.
        keep_s: How long an ended turn can be replayed.
    """

    def __init__(self, *, detach_grace_s: float | None = None, keep_s: float = KEEP_S) -> None:
        self._detach_grace_s = detach_grace_s
        self._keep_s = keep_s
        self._entries: dict[str, _Entry] = {}
        self._closing = False
        self._began_at = float("-inf")

    @property
    def closing(self) -> bool:
        """Whether `shutdown` has begun."""
        return self._closing

    @property
    def active(self) -> int:
        """How many turns run. The worker's threads ask too, hence the copy."""
        return sum(1 for entry in tuple(self._entries.values()) if not entry.scope.log.closed)

    @property
    def starting(self) -> bool:
        """Whether a turn has just begun. The worker's threads ask."""
        return time.monotonic() - self._began_at < STARTING_S

    def start(
        self, turn_id: str, body: TurnBody, *, owner: int | None = None, total_s: float | None = None
    ) -> TurnScope:
        """Runs `body` as a task of its own, for at most `total_s` seconds. `owner` is the id of the user who asked.

        The body has to catch the cancellation, read `scope.stop_reason` and settle. Its log is closed when it returns.

        Raises:
            ShuttingDownError: after `shutdown` has begun.
        """
        if self._closing:
            raise ShuttingDownError
        scope = TurnScope(turn_id, owner)
        entry = _Entry(scope)
        self._entries[turn_id] = entry
        self._began_at = time.monotonic()
        entry.task = asyncio.create_task(self._run(entry, body, total_s), name=f"turn-{turn_id}")
        return scope

    def get(self, turn_id: str) -> TurnScope | None:
        """The turn, if it runs or can still be replayed."""
        entry = self._entries.get(turn_id)
        return None if entry is None else entry.scope

    async def watch(self, turn_id: str, after: int = 0) -> AsyncGenerator[Event]:
        """Follows a turn's events as a counted watcher. Close the generator when done (`contextlib.aclosing`).

        Raises:
            KeyError: for a turn that is not, or no longer, here.
        """
        entry = self._entries[turn_id]
        with self._watching(entry):
            async with aclosing(entry.scope.log.follow(after)) as events:
                async for event in events:
                    yield event

    def stop(self, turn_id: str) -> bool:
        """Tells a turn to end; whether there was one running. Twice is once; works before the first token."""
        entry = self._entries.get(turn_id)
        return entry is not None and self._stop(entry, "stop")

    async def finished(self, turn_id: str) -> None:
        """Waits until the turn has settled; returns at once for one that is not here."""
        entry = self._entries.get(turn_id)
        if entry is not None and entry.task is not None:
            await asyncio.wait([entry.task])

    async def shutdown(self, within_s: float = SHUTDOWN_S) -> None:
        """Ends every turn, waits for them to settle, and so lets every watcher come to its end. Safe to call twice."""
        self._closing = True
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None and not entry.task.done()]
        for entry in list(self._entries.values()):
            entry.cancel_detach()
            self._stop(entry, "shutdown")
        if tasks:
            _done, late = await asyncio.wait(tasks, timeout=within_s)
            for task in late:
                _log.error(kv("turn_did_not_settle", turn=task.get_name().removeprefix("turn-")))
                task.cancel()
        for entry in self._entries.values():
            entry.scope.log.close()

    async def _run(self, entry: _Entry, body: TurnBody, total_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        turn_id = entry.scope.turn_id
        turn_id_var.set(turn_id)
        total = None if total_s is None else loop.call_later(total_s, self._stop, entry, "total")
        entry.begun = True
        task = asyncio.current_task()
        if entry.scope.stop_reason is not None and task is not None:
            task.cancel()  # stopped before its first step: the body meets the cancellation at its first await
        try:
            await body(entry.scope)
        finally:
            if total is not None:
                total.cancel()
            entry.cancel_detach()
            entry.scope.log.close()
            loop.call_later(self._keep_s, self._entries.pop, turn_id, None)

    def _stop(self, entry: _Entry, reason: StopReason) -> bool:
        task = entry.task
        if entry.scope.log.closed or entry.scope.stop_reason is not None or task is None:
            return False
        entry.scope.stop_reason = reason
        if entry.begun:
            # A task cancelled before its first step never runs its body, and the turn would never be settled.
            task.cancel()
        return True

    @contextmanager
    def _watching(self, entry: _Entry) -> Generator[None]:
        entry.watchers += 1
        entry.cancel_detach()
        try:
            yield
        finally:
            entry.watchers -= 1
            if entry.watchers == 0 and self._detach_grace_s is not None and not entry.scope.log.closed:
                loop = asyncio.get_running_loop()
                entry.detach = loop.call_later(self._detach_grace_s, self._stop, entry, "detach")
