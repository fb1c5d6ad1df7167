"""Reads documents again, once, that an earlier version of the extractors refused or took for something simpler.

Owns the version, and the pace: a few at a time and only while nothing else is to be read. Which documents these are is
`app.store.rereading`'s, reading them `app.ingest.pipeline`'s. A lane of the worker calls `step`; a kill costs nothing,
and several workers may do it at once.
"""

import logging
from collections.abc import Callable

from app.clock import Clock
from app.ingest.yielding import Yielding
from app.logs import kv
from app.store import jobs, rereading
from app.store.engine import Database

EXTRACTORS = 2
"""To be raised whenever a format is read that was refused before, or that was read as something simpler. Libraries of
before this was kept count as 0; 1 took the code of reStructuredText for prose."""

AT_ONCE = 8
"""Documents queued together: what a new upload may have to wait for."""

LOOK_S = 0.5
"""How long it waits while something is to be read, before it looks again."""

_log = logging.getLogger("app.ingest")


class Rereading:
    """The lane's work.

    Args:
        wake: Tells the other lanes that something was queued.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        yielding: Yielding,
        wake: Callable[[], None],
        version: int = EXTRACTORS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._yielding = yielding
        self._wake = wake
        self._version = version
        self._is_through = False
        self._queued = 0

    def step(self) -> float | None:
        """Queues some more, if nothing waits to be read."""
        if self._is_through or not self._yielding.give_way():
            return None
        if self._database.read(lambda session: jobs.next_due(session, "ingest", self._clock.now())) is not None:
            return LOOK_S
        queued = self._database.write(
            lambda session: rereading.queue_some(session, self._version, AT_ONCE, self._clock.now())
        )
        if queued is None:
            self._is_through = True
            if self._queued:
                _log.info(kv("documents_reread", documents=self._queued, extractors=self._version))
            return None
        self._queued += queued
        self._wake()
        return 0
