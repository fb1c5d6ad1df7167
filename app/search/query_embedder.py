"""The question's vector, if one can be had now.

Owns what happens when the embedder fails: one warning per outage, a rest, and words alone until it answers again.
"""

import logging
import threading
from dataclasses import dataclass

from app.clock import Clock
from app.logs import kv
from app.search.embeddings import Embedder, FloatVector
from app.search.errors import EmbedError
from app.store.vectors import ActiveGeneration

REST_S = 30.0
"""How long a failed embedder is left alone, so that not every search waits for a server that is down."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector, and the generation it may be compared with."""

    generation: ActiveGeneration
    vector: FloatVector


class QueryEmbedder:
    """Embeds questions, and leaves it be while the embedder is down. Thread-safe."""

    def __init__(self, embedder: Embedder, clock: Clock) -> None:
        self._embedder = embedder
        self._clock = clock
        self._lock = threading.Lock()
        self._resting_until: float | None = None

    def embed(self, query: str, generation: ActiveGeneration | None) -> Meaning | None:
        """The vector of `query`, None where words alone have to serve: nothing is embedded yet, what is embedded came
        from another model, or the embedder fails."""
        if generation is None or generation.model != self._embedder.model or self._is_resting():
            return None
        try:
            vector = self._embedder.embed_query(query)
        except EmbedError as error:
            self._failed(error)
            return None
        self._answered()
        return Meaning(generation, vector) if vector.shape == (generation.dim,) else None

    def _is_resting(self) -> bool:
        with self._lock:
            return self._resting_until is not None and self._clock.monotonic() < self._resting_until

    def _failed(self, error: EmbedError) -> None:
        with self._lock:
            first = self._resting_until is None
            self._resting_until = self._clock.monotonic() + REST_S
        if first:
            log.warning(kv("query_embedder_down", model=self._embedder.model, code=error.code))

    def _answered(self) -> None:
        with self._lock:
            was_down, self._resting_until = self._resting_until is not None, None
        if was_down:
            log.info(kv("query_embedder_up", model=self._embedder.model))
