"""Fills the trigram index of a library that is older than it, a little at a time, while everything else goes on.

Owns the pace and what the log says of it; the rows are `app.search.grams`'. A lane of the worker calls `step`. Several
workers may do it at once, and a kill costs at most one step: each looks for what is still missing in its own
transaction.
"""

import logging

from app.logs import kv
from app.search import grams
from app.store.engine import Database

BATCH = 500
"""Passages in one transaction: about 100 ms of the only writer's time."""

REST_S = 0.05
"""After each, for whoever else wants to write."""

_log = logging.getLogger("app.ingest")


class PartFilling:
    """Fills the index once; passages stored from now on come with their rows."""

    def __init__(self, database: Database, batch: int = BATCH) -> None:
        self._database = database
        self._batch = batch
        self._left: int | None = None

    def step(self) -> float | None:
        """Does a little; returns the seconds to rest, None when there is nothing to do."""
        if self._left == 0:
            return None
        if self._left is None:
            self._left = self._database.read(grams.left)
            if self._left:
                _log.info(kv("parts_filling", left=self._left))
            return 0
        self._left = self._database.write(lambda session: grams.backfill(session, self._batch))
        if not self._left:
            _log.info(kv("parts_filled"))
        return REST_S
