"""The embedders of generations: which one the settings want, which one made the vectors of a generation.

Owns the embedders that are alive, several at once while one generation is built and another serves, and lets go of
those nobody needs any more. Called by search (questions) and ingest (passages).
"""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from app.logs import redactor
from app.search import choice
from app.search.choice import Spec
from app.search.embeddings import Embedder
from app.search.errors import UnknownEmbedderError
from app.settings import Settings
from app.store.settings import effective
from app.store.vectors import ActiveGeneration

IDLE_S = 60.0
"""How long an embedder that no generation needs stays alive after its last use: a question may still be on its way."""

Make = Callable[[Spec, Settings], Embedder]


class Embedders:
    """Hands out embedders, one per choice. Thread-safe.

    Args:
        settings: The environment's.
        default: Takes the place of the built-in embedder where the settings choose none.
        make: Makes the embedder of a choice.
    """

    def __init__(self, settings: Settings, default: Embedder | None = None, make: Make = choice.make) -> None:
        self._settings = settings
        self._default = default
        self._make = make
        self._lock = threading.Lock()
        self._alive: dict[Spec, tuple[Embedder, float]] = {}

    def wanted(self, session: Session) -> tuple[Spec, Embedder]:
        """What the settings in effect choose.

        Raises:
            UnknownEmbedderError: when they name a built-in embedder that is not there.
        """
        return self.chosen(effective(session, self._settings))

    def chosen(self, settings: Settings) -> tuple[Spec, Embedder]:
        """What `settings` choose.

        Raises:
            UnknownEmbedderError: as above.
        """
        spec = choice.spec_from(settings)
        if self._default is not None and settings.embed_base_url is None and settings.embed_model is None:
            return Spec(self._default.model), self._default
        return spec, self._get(spec)

    @property
    def default_model(self) -> str:
        """The model that serves where the settings choose none."""
        return self._default.model if self._default is not None else choice.DEFAULT

    def of(self, generation: ActiveGeneration) -> Embedder | None:
        """The embedder that made a generation's vectors; None where it is not known how to make it, or it makes others
        now."""
        embedder = self._known(generation)
        return embedder if embedder is not None and embedder.dim in (0, generation.dim) else None

    def tidy(self, needed: Collection[ActiveGeneration], idle_s: float = IDLE_S) -> None:
        """Closes what no generation of `needed` uses and nobody asked for in the last `idle_s` seconds."""
        specs = {self._spec(generation) for generation in needed}
        since = time.monotonic() - idle_s
        with self._lock:
            idle = [spec for spec, (_, used) in self._alive.items() if spec not in specs and used < since]
            gone = [self._alive.pop(spec)[0] for spec in idle]
        for embedder in gone:
            embedder.close()

    def close(self) -> None:
        """Closes them all. Safe to call twice; they may be used again after."""
        with self._lock:
            alive = [embedder for embedder, _ in self._alive.values()]
            self._alive.clear()
        for embedder in [*alive, *([self._default] if self._default is not None else [])]:
            embedder.close()

    def _known(self, generation: ActiveGeneration) -> Embedder | None:
        if self._default is not None and generation.base_url is None and generation.model == self._default.model:
            return self._default
        with suppress(UnknownEmbedderError):
            return self._get(self._spec(generation))
        return None

    def _get(self, spec: Spec) -> Embedder:
        with self._lock:
            known = self._alive.get(spec)
            embedder = known[0] if known is not None else self._make(spec, self._settings)
            self._alive[spec] = embedder, time.monotonic()
        if spec.api_key:
            redactor.add(spec.api_key)
        return embedder

    def _spec(self, generation: ActiveGeneration) -> Spec:
        if generation.base_url is None:
            return Spec(generation.model)
        return Spec(generation.model, generation.base_url, generation.api_key or self._key_for(generation.base_url))

    def _key_for(self, base_url: str) -> str | None:
        """The environment's key, for the host it was set for."""
        own = self._settings.embed_base_url
        return self._settings.embed_api_key if own is None or _host(own) == _host(base_url) else None


class OneEmbedder(Embedders):
    """A single embedder: what its model did not make has none."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(Settings.model_construct(), embedder)
        self._one = embedder

    def wanted(self, session: Session) -> tuple[Spec, Embedder]:
        """That one."""
        return Spec(self._one.model), self._one

    def _known(self, generation: ActiveGeneration) -> Embedder | None:
        return self._one if generation.model == self._one.model else None


def embedders_of(given: "Embedder | Embedders") -> Embedders:
    """`given`, or a set of this one embedder."""
    return given if isinstance(given, Embedders) else OneEmbedder(given)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
