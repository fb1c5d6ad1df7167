"""The question's vector, if one can be had now.

Owns what happens when an embedder fails: one warning per outage, a rest, and words alone until it answers again.
"""

import logging
import threading
from dataclasses import dataclass

from app.clock import Clock
from app.logs import kv
from app.search.embeddings import FloatVector, floor_of
from app.search.errors import EmbedError
from app.search.generations import Embedders
from app.store.vectors import ActiveGeneration

REST_S = 30.0
"""How long a failed embedder is left alone, so that not every search waits for a server that is down."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector, the generation it may be compared with, and the cosine that counts as 0 there."""

    generation: ActiveGeneration
    vector: FloatVector
    floor: float = 0.0


class QueryEmbedder:
    """Embeds questions with the embedder of the generation they are compared with, and leaves it be while it is down.
    Thread-safe."""

    def __init__(self, embedders: Embedders, clock: Clock) -> None:
        self._embedders = embedders
        self._clock = clock
        self._lock = threading.Lock()
        self._resting: dict[int, float] = {}
        """By generation: until when."""

    def embed(self, query: str, generation: ActiveGeneration | None) -> Meaning | None:
        """The vector of `query`, None where words alone have to serve: nothing is embedded yet, what is embedded came
        from an embedder that can't be had, or the embedder fails."""
        if generation is None or self._is_resting(generation):
            return None
        embedder = self._embedders.of(generation)
        if embedder is None:
            return None
        try:
            vector = embedder.embed_query(query)
        except EmbedError as error:
            self._failed(generation, error)
            return None
        self._answered(generation)
        if vector.shape != (generation.dim,):
            return None
        named = floor_of(embedder)
        return Meaning(generation, vector, (generation.floor or 0.0) if named is None else named)

    def _is_resting(self, generation: ActiveGeneration) -> bool:
        with self._lock:
            until = self._resting.get(generation.id)
            return until is not None and self._clock.monotonic() < until

    def _failed(self, generation: ActiveGeneration, error: EmbedError) -> None:
        with self._lock:
            first = generation.id not in self._resting
            self._resting[generation.id] = self._clock.monotonic() + REST_S
        if first:
            log.warning(kv("query_embedder_down", model=generation.model, code=error.code))

    def _answered(self, generation: ActiveGeneration) -> None:
        with self._lock:
            was_down = self._resting.pop(generation.id, None) is not None
        if was_down:
            log.info(kv("query_embedder_up", model=generation.model))
