"""The next generation, built beside the one that serves.

Owns a step of that work in the embedding lane: a batch of texts that lack their vector, then the comparison, then the
switch where it comes by itself; and deleting what was given up, bit by bit. What is stored tells where it stands, so a
kill costs the batch. A server that is away makes it wait, say why, and try again. One process at a time builds.
"""

import logging
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
from app.ingest.chunking import embedded_text
from app.ingest.comparison import Comparer
from app.ingest.embedding import EMBED_AT_ONCE, at_once
from app.ingest.stored_files import OneHolder
from app.ingest.yielding import Yielding
from app.logs import kv
from app.search.embeddings import Embedder
from app.search.errors import EmbedError
from app.search.generations import Embedders
from app.search.vectors import VectorIndex
from app.store import generation_changes, generations, vectors
from app.store.engine import Database, Session
from app.store.generations import GenerationRow

DROP_AT_ONCE = 2_000
RETRY_BASE_S = 2.0
RETRY_MAX_S = 120.0
WINDOW_S = 60.0

_log = logging.getLogger("app.ingest")


class Pace:
    """How many texts a second were embedded lately. Thread-safe; what another process does is not seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._done: deque[tuple[float, int]] = deque()

    def note(self, texts: int) -> None:
        """A batch was stored."""
        with self._lock:
            self._done.append((self._clock.monotonic(), texts))

    def rate(self) -> float | None:
        """Texts a second over the last minute; None while nobody can tell."""
        now = self._clock.monotonic()
        with self._lock:
            while self._done and self._done[0][0] < now - WINDOW_S:
                self._done.popleft()
            if len(self._done) < 2:
                return None
            spent = self._done[-1][0] - self._done[0][0]
            texts = sum(count for _, count in self._done) - self._done[0][1]
        return texts / spent if spent > 0 else None


@dataclass(frozen=True, slots=True)
class Builds:
    """What the builder works with: the folder in which one process at a time may build, and the resident index."""

    data_dir: Path
    index: VectorIndex


class Building:
    """The builder. Belongs to the embedding lane."""

    def __init__(
        self, database: Database, embedders: Embedders, clock: Clock, yielding: Yielding, builds: Builds
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._clock = clock
        self._yielding = yielding
        self.pace = Pace(clock)
        self._mine = OneHolder(builds.data_dir / "building.lock")
        self._index = builds.index
        self._comparer = Comparer(database, clock, yielding, builds.index)
        self._generation: int | None = None
        self._after_chunk = 0
        self._failures = 0
        self._again_at = clock.monotonic()

    def step(self) -> float | None:
        """Does a little. Seconds until there is more to do: 0 at once, None when somebody has to say so first."""
        if self._database.read(_has_dropped) and self._mine.take():
            self._database.write(lambda session: generation_changes.drop_some(session, DROP_AT_ONCE))
            return 0
        row = self._database.read(lambda session: generations.get(session, "building"))
        if row is None or row.paused_at is not None:
            self._rest()
            return None
        if row.id != self._generation:
            self._generation, self._after_chunk, self._failures = row.id, 0, 0
            self._again_at = self._clock.monotonic()
        wait = self._again_at - self._clock.monotonic()
        if wait > 0 or not self._mine.take():
            return max(0.0, wait) or None
        try:
            return self._advance(row)
        except EmbedError as error:
            return self._put_off(row, error)

    def close(self) -> None:
        """Lets another process build."""
        self._mine.close()

    def _advance(self, row: GenerationRow) -> float | None:
        embedder = self._embedders.of(row.as_active())
        if embedder is None:
            raise EmbedError("embed_changed")
        texts = self._missing(row)
        if texts:
            return self._embed(row, embedder, texts)
        if row.built_at is None:
            self._database.write(lambda session: generation_changes.note_built(session, row.id, self._clock.now()))
            counted = self._database.read(lambda session: generations.count(session, row.id))
            _log.info(kv("generation_built", generation=row.id, model=row.model, texts=counted.total))
            return 0
        if row.compared is None:
            return self._compare(row)
        if row.auto_switch:
            self._database.write(lambda session: generation_changes.switch(session, row.id, self._clock.now()))
            _log.info(kv("generation_switched", generation=row.id, model=row.model, by="itself"))
            return 0
        return None

    def _missing(self, row: GenerationRow) -> list[generations.MissingText]:
        """The next texts. Ids of passages only grow, so what was passed is not looked at again, but for a last look at
        everything before it counts as built."""

        def after(chunk_id: int) -> list[generations.MissingText]:
            return self._database.read(
                lambda session: generations.missing_texts(session, row.id, chunk_id, EMBED_AT_ONCE)
            )

        texts = after(self._after_chunk)
        if not texts and self._after_chunk and row.built_at is None:
            texts = after(0)
        return texts

    def _embed(self, row: GenerationRow, embedder: Embedder, texts: list[generations.MissingText]) -> float:
        if not self._yielding.give_way():
            return 0
        texts = texts[: at_once(self._yielding)]
        matrix = embedder.embed_passages([embedded_text(text.title, text.heading, text.text) for text in texts])
        if matrix.shape[1] != row.dim:
            raise EmbedError("embed_changed")
        shas = [text.sha256 for text in texts]
        if self._database.write(lambda session: generation_changes.add_built(session, row.id, shas, matrix)):
            self.pace.note(len(texts))
            self._after_chunk = texts[-1].chunk_id
        if row.problem is not None:
            self._database.write(lambda session: generation_changes.note_problem(session, row.id, None))
            _log.info(kv("generation_goes_on", generation=row.id))
        self._failures = 0
        return 0

    def _compare(self, row: GenerationRow) -> float | None:
        active = self._database.read(vectors.active_generation)
        old = self._embedders.of(active) if active is not None else None
        new = self._embedders.of(row.as_active())
        compared = self._comparer.compare((active, old), (row.as_active(), new))
        if compared is None:
            return 0
        self._database.write(lambda session: generation_changes.note_compared(session, row.id, compared))
        _log.info(kv("generation_compared", generation=row.id, questions=compared["asked"], reason=compared["problem"]))
        return 0

    def _put_off(self, row: GenerationRow, error: EmbedError) -> float:
        delay = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        self._again_at = self._clock.monotonic() + delay
        self._database.write(lambda session: generation_changes.note_problem(session, row.id, error.code))
        _log.warning(kv("generation_waits", generation=row.id, reason=error.code, retry_s=round(delay)))
        return delay

    def _rest(self) -> None:
        """Nothing is built: lets go of what only building and switching needed."""
        self._mine.close()
        self._index.tidy()
        active = self._database.read(vectors.active_generation)
        self._embedders.tidy([active] if active is not None else [])


def _has_dropped(session: Session) -> bool:
    return generations.get(session, "dropping") is not None
