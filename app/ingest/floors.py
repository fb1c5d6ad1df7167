"""Measuring the floor of embedders that name none: once per generation, in the background.

Owns which generation is due and what happens when its embedder fails: nothing, until later; its cosines are taken as
they are for so long. The rule is `app.search.floor`'s. Part of the embedding lane, before it embeds anything, so that
the first question that meets a new embedder's vectors is judged rightly.
"""

import logging

from app.clock import Clock
from app.ingest.yielding import Yielding
from app.logs import kv
from app.search.embeddings import floor_of
from app.search.errors import EmbedError
from app.search.floor import RULE, measure
from app.search.generations import Embedders
from app.store import chunks, generation_changes, generations
from app.store.engine import Database, Session
from app.store.generations import GenerationRow

RETRY_S = 60.0
"""How long an embedder that failed is left alone."""

_log = logging.getLogger("app.ingest")


class Floors:
    """Measures. Belongs to the embedding lane."""

    def __init__(self, database: Database, embedders: Embedders, clock: Clock, yielding: Yielding) -> None:
        self._database = database
        self._embedders = embedders
        self._clock = clock
        self._yielding = yielding
        self._again_at: dict[int, float] = {}
        """By generation: until when it is left alone."""

    def step(self) -> None:
        """Measures what is due, once there is anything to search; cheap where nothing is."""
        for row in self._database.read(_due):
            if row.paused_at is None and self._again_at.get(row.id, 0.0) <= self._clock.monotonic():
                self._measure(row)

    def _measure(self, row: GenerationRow) -> None:
        embedder = self._embedders.of(row.as_active())
        if embedder is None:
            return
        try:
            floor = None
            if floor_of(embedder) is None:
                measured = measure(embedder, self._yielding.give_way)
                if measured is None:
                    return
                if embedder.dim not in (0, row.dim):
                    raise EmbedError("embed_changed")
                floor = measured.floor
                _log.info(kv("floor_measured", generation=row.id, model=row.model, floor=floor))
        except EmbedError as error:
            self._again_at[row.id] = self._clock.monotonic() + RETRY_S
            _log.warning(kv("floor_waits", generation=row.id, reason=error.code, retry_s=round(RETRY_S)))
            return
        self._database.write(lambda session: generation_changes.note_floor(session, row.id, floor, RULE))


def _due(session: Session) -> list[GenerationRow]:
    rows = generations.unmeasured(session, RULE)
    return rows if rows and chunks.has_any(session) else []
