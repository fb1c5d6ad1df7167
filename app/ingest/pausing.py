"""Pausing: files go on being added and listed, but none is read, recognised or embedded until somebody continues.

Owns what a pause means to the lanes: the document or batch in hand is finished, whatever else was claimed goes back,
and a lane asks again at its next look. What is searchable stays so; a build of another generation has a pause of its
own. The state is the database's, so every process keeps to it. Used by `app.ingest.worker` and the library page.
"""

import logging
from collections.abc import Callable

from app.clock import Clock
from app.logs import kv
from app.store import pausing
from app.store.engine import Database

_log = logging.getLogger("app.ingest")


class Pausing:
    """The switch.

    Args:
        wake: Has the lanes look at once.
    """

    def __init__(self, database: Database, clock: Clock, wake: Callable[[], object]) -> None:
        self._database = database
        self._clock = clock
        self._wake = wake

    def is_on(self) -> bool:
        """Whether it is paused. Reads the database."""
        return self._database.read(pausing.is_paused)

    def turn(self, on: bool, user_id: int) -> None:
        """Pauses, or continues; of no effect, and not logged, where it is so already."""
        changed = self._database.write(lambda session: pausing.set_paused(session, on, user_id, self._clock.now()))
        if changed:
            _log.info(kv("ingest_pause", on=int(on), by=user_id))
        self._wake()

    def unless_on(self, step: Callable[[], float | None]) -> Callable[[], float | None]:
        """A lane's step that does nothing while it is paused."""
        return lambda: None if self.is_on() else step()
