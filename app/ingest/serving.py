"""Which generation passages get vectors of, and by which embedder.

Owns comparing, once in a life, the embedder that the settings choose with what is stored. Where the old one can go on,
the new generation is built beside it (`app.ingest.building`) and becomes the active one by itself, since nobody chose
it on a page; where it can't (its address is not known, or it makes other vectors now), or nothing is embedded yet, the
new one serves at once and words fill the gaps. Used by the embedding lane.
"""

import logging
from contextlib import suppress

from app.clock import Clock
from app.ingest.chunking import CHUNKER_VERSION
from app.logs import kv
from app.search.embeddings import Embedder
from app.search.errors import EmbedError
from app.search.generations import Embedders
from app.settings import Settings
from app.store import chunks, generation_changes, generations, vectors
from app.store.engine import Database, Session
from app.store.generations import Recipe

PROBE = "how many dimensions"

RETRY_S = 30.0
"""How long a wanted embedder that does not answer is left alone while another one serves."""

_log = logging.getLogger("app.ingest")


class Serving:
    """The generation that serves, with its embedder. Belongs to the embedding lane."""

    def __init__(self, database: Database, settings: Settings, embedders: Embedders, clock: Clock) -> None:
        self._database = database
        self._settings = settings
        self._embedders = embedders
        self._clock = clock
        self.agreed = False
        """Whether the settings and what is stored agree, as far as this process has looked."""
        self._again_at = clock.monotonic()

    def current(self) -> tuple[vectors.ActiveGeneration, Embedder]:
        """What serves, agreed upon first if that can be had now.

        Raises:
            EmbedError: when nothing serves whose embedder can be had.
        """
        serving = self._now()
        if serving is None:
            self.agree()
            serving = self._now()
        elif not self.agreed and self._clock.monotonic() >= self._again_at:
            self._again_at = self._clock.monotonic() + RETRY_S
            with suppress(EmbedError):
                self.agree()
                serving = self._now()
        if serving is None:
            raise EmbedError
        return serving

    def agree(self) -> None:
        """Has the vectors made that the settings ask for: at once, or beside those that serve.

        Raises:
            EmbedError: when an endpoint has to be asked how long its vectors are, and does not answer; or the embedder
                is not installed.
        """
        (spec, embedder), active, building = self._database.read(
            lambda session: (
                self._embedders.wanted(session),
                vectors.active_generation(session),
                generations.get(session, "building"),
            )
        )
        known = {row.model: row.dim for row in (building, active) if row is not None}
        # As stored, if it is the same model, so that a start need not wait for the server; else it is asked.
        dim = embedder.dim or known.get(spec.model) or embedder.embed_passages([PROBE]).shape[1]
        key = None if self._settings.is_locked("embed_api_key") else spec.api_key
        recipe = Recipe(spec.model, dim, spec.base_url, key)
        can_serve = active is not None and self._embedders.of(active) is not None

        def work(session: Session) -> generations.GenerationRow | None:
            now, chunker = self._clock.now(), str(CHUNKER_VERSION)
            generation_changes.recut(session, chunker, now)
            if can_serve and chunks.has_any(session):
                row = generation_changes.begin(session, recipe, chunker, now, auto=True)
                return row if row.state == "building" and building is None else None
            generation_changes.begin_at_once(session, recipe, chunker, now)
            return None

        begun = self._database.write(work)
        self.agreed = True
        if begun is not None:
            _log.info(kv("generation_build", generation=begun.id, model=begun.model, dim=begun.dim, by="settings"))

    def _now(self) -> tuple[vectors.ActiveGeneration, Embedder] | None:
        active = self._database.read(vectors.active_generation)
        embedder = self._embedders.of(active) if active is not None else None
        return (active, embedder) if active is not None and embedder is not None else None
