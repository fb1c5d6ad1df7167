"""Two embedders and the generations they make: what the tests of a change of embedder share."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from app.clock import SystemClock
from app.ingest.generations import Generations
from app.search.choice import Spec
from app.search.generations import Embedders
from app.search.hits import Hit
from app.search.hybrid import Searcher
from app.settings import Settings
from app.store import generations
from app.store.models.vectors import Generation, Vector
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary
from tests.ingest_parts import sections
from tests.waiting import until

FILES = {f"{name}.md": sections(name) for name in ("backup", "garden", "raid")}
URL = "http://embedder.invalid/v1"
NEW = Spec("new", URL, "sk-key-of-the-new-one")


class Library:
    """A library whose first embedder is `old`, and what a person decides about the next one, `new`."""

    def __init__(self, settings: Settings, new: WordEmbedder | None = None, **more: Any) -> None:
        self.old = WordEmbedder("old", 64, {"flowers": "garden"})
        self.new = new or WordEmbedder("new", 32, {"flowers": "garden"})
        by_model: Mapping[str, WordEmbedder] = {"old": self.old, "new": self.new}
        self.embedders = Embedders(settings, self.old, make=lambda spec, _settings: by_model[spec.model])
        self.life = IngestLibrary(settings, embedder=self.embedders, **more)
        self.decide = Generations(
            self.life.database,
            settings,
            self.embedders,
            clock=SystemClock(),
            wake=self.life.worker.wake,
            pace=self.life.worker.build_pace,
        )
        self.searcher = Searcher(self.life.database, self.embedders, self.life.index)

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.life.__exit__(None, None, None)

    def start(self) -> "Library":
        self.life.start()
        return self

    def filled(self) -> "Library":
        """With three documents, at rest, in the old generation."""
        self.start()
        self.life.add_all(FILES)
        self.life.settle()
        assert self.states() == {"old": "active"}
        return self

    def states(self) -> dict[str, str]:
        """Every generation's state, by model."""
        rows = self.life.database.read(generations.list_generations)
        return {row.model: row.state for row in rows}

    def row(self, model: str) -> generations.GenerationRow:
        rows = self.life.database.read(generations.list_generations)
        return next(row for row in rows if row.model == model)

    def vectors(self, model: str) -> int:
        query = select(func.count()).select_from(Vector).join(Generation).where(Generation.model == model)
        return self.life.database.read(lambda session: session.scalar(query)) or 0

    def search(self, query: str = "flowers") -> list[Hit]:
        return self.searcher.search(query, user_id=USER)

    def finds_by_meaning(self) -> bool:
        """Whether a word that stands nowhere leads to its synonym's document."""
        hits = self.search()
        return bool(hits) and hits[0].path == "garden.md" and hits[0].vector_rank == 1

    def until_built(self) -> None:
        until(lambda: self.row("new").compared is not None, "built and compared")
