"""Another embedder, or another way of cutting, than at the last start: everything is embedded anew, unasked."""

import logging

import pytest
from sqlalchemy import func, select, update

from app.search.hybrid import Searcher
from app.settings import Settings
from app.store.engine import Session
from app.store.models.vectors import Generation, Vector
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, sections
from tests.waiting import until

FILES = {f"{name}.md": sections(name) for name in ("backup", "garden", "raid")}


def first_life(settings: Settings) -> None:
    with IngestLibrary(settings, embedder=WordEmbedder("first", 64)).start() as library:
        library.add_all(FILES)
        library.settle()
        assert vectors_by_model(library) == {"first": 3}


def vectors_by_model(library: IngestLibrary) -> dict[str, int]:
    query = select(Generation.model, func.count()).join(Vector, Vector.generation_id == Generation.id)
    return {row[0]: row[1] for row in library.database.read(lambda s: list(s.execute(query.group_by(Generation.id))))}


def is_complete(library: IngestLibrary) -> bool:
    """Whether every document has its one vector in the generation that serves, and nothing is left to do."""
    return {(row.status, row.embedded) for row in library.rows()} == {("ready", 1)} and library.worker.is_idle()


def all_embedded(library: IngestLibrary, model: str) -> bool:
    is_ready = {row.status for row in library.rows()} == {"ready"}
    return is_ready and vectors_by_model(library).get(model) == 3 and library.worker.is_idle()


def test_a_changed_embedder_embeds_everything_anew_although_nothing_is_queued(settings: Settings) -> None:
    """Vectors of 64 and of 32 dimensions never mix; a search by meaning works in the new ones."""
    first_life(settings)
    synonyms = {"flowers": "garden"}
    with IngestLibrary(settings, embedder=WordEmbedder("second", 32, synonyms)).start() as library:
        until(lambda: all_embedded(library, "second"), "embedded anew")
        hits = Searcher(library.database, library.embedder, library.index).search("flowers", user_id=USER)
        assert hits[0].path == "garden.md"
        assert hits[0].vector_rank == 1
        assert_sound(library)


def test_the_same_name_with_other_dimensions_is_another_embedder(settings: Settings) -> None:
    """A server may serve another model under the same name."""
    first_life(settings)
    with IngestLibrary(settings, embedder=WordEmbedder("first", 32)).start() as library:

        def dims(session: Session) -> list[int]:
            return list(session.scalars(select(Generation.dim).where(Generation.state == "active")))

        until(lambda: library.database.read(dims) == [32], "another generation")
        assert library.orphans().unready == 0
        until(lambda: is_complete(library), "embedded in another generation")
        assert_sound(library)


class Unasked(WordEmbedder):
    """An endpoint: how long its vectors are is known once it has answered."""

    def __init__(self, model: str, dim: int) -> None:
        super().__init__(model, dim)
        self.told, self.dim = dim, 0

    def embed_passages(self, texts: list[str]):
        self.dim = self.told
        return super().embed_passages(texts)


def test_an_endpoint_whose_vectors_grew_is_noticed_at_the_next_document(settings: Settings) -> None:
    """Its name is as before, so a start does not ask it; the first vectors tell."""
    first_life(settings)
    with IngestLibrary(settings, embedder=Unasked("first", 32)).start() as library:
        library.add("late.md", sections("late"))
        until(lambda: is_complete(library) and len(library.rows()) == 4, "embedded anew")
        assert_sound(library)


def test_words_serve_while_the_new_embedder_does_not_answer(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of the old vectors is used for it, nothing is lost; one line says what is waited for."""
    first_life(settings)
    embedder = Unasked("second", 32)
    embedder.is_down = True
    with caplog.at_level(logging.WARNING, "app.ingest"), IngestLibrary(settings, embedder=embedder).start() as library:
        until(lambda: "embedding_waits" in caplog.text, "it was asked")
        hits = Searcher(library.database, embedder, library.index).search("garden", user_id=USER)
        assert [hit.path for hit in hits][:1] == ["garden.md"]
        assert all(hit.vector_rank is None for hit in hits)
        embedder.is_down = False
        until(lambda: all_embedded(library, "second"), "embedded once it answers")
        assert_sound(library)


def test_going_back_to_the_first_embedder_costs_nothing(settings: Settings) -> None:
    """Its vectors were kept."""
    first_life(settings)
    with IngestLibrary(settings, embedder=WordEmbedder("second", 32)).start() as library:
        until(lambda: all_embedded(library, "second"), "embedded anew")
    embedder = CountingEmbedder()
    embedder.model = "first"
    with IngestLibrary(settings, embedder=embedder).start() as library:
        until(lambda: is_active(library, "first"), "taken up again")
        library.settle()
        assert embedder.texts == []
        assert {row.embedded for row in library.rows()} == {1}
        assert_sound(library)


def is_active(library: IngestLibrary, model: str) -> bool:
    query = select(Generation.model).where(Generation.state == "active")
    return library.database.read(lambda session: session.scalar(query)) == model


def test_another_way_of_cutting_reads_every_document_again(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Passages made by an older version are replaced, and stay findable until they are."""
    first_life(settings)
    with IngestLibrary(settings) as library:
        library.database.write(lambda session: session.execute(update(Generation).values(chunker="0")) and None)
    embedder = WordEmbedder("first", 64)
    with caplog.at_level(logging.INFO, "app.ingest"), IngestLibrary(settings, embedder=embedder).start() as library:
        until(lambda: caplog.text.count("document id=") == 3, "read again")
        until(lambda: is_complete(library), "embedded again")
        assert_sound(library)


def test_the_embedder_is_asked_nothing_while_the_library_is_empty(settings: Settings) -> None:
    """A first start waits for no endpoint."""
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        library.settle()
        document_id = library.add("a.md", sections("one"))
        library.wait_for(document_id, "ready")
        assert len(embedder.texts) == 1
