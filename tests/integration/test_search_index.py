"""The full-text rows, the generations and the resident vector index, on a real database."""

import hashlib
from threading import Thread

import numpy as np
import pytest
from sqlalchemy import text

from app.search import fulltext
from app.search.frequencies import Frequencies
from app.search.vectors import VectorIndex
from app.search.words import Words
from app.store import vectors
from app.store.engine import Database
from app.store.models import Chunk, Document
from app.store.vectors import ActiveGeneration
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import NOW, add_document, check_index, embed_all

DIM = 64


def sha(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def some_vectors(count: int, seed: int = 7) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def generation_of(database: Database, model: str = "m", dim: int = DIM) -> ActiveGeneration:
    return database.write(lambda session: vectors.ensure_generation(session, model, dim, "1", NOW))


def store(database: Database, generation: ActiveGeneration, names: list[str], matrix: np.ndarray) -> int:
    return database.write(
        lambda session: vectors.add_vectors(session, generation.id, [sha(name) for name in names], matrix)
    )


def nearest(
    database: Database, index: VectorIndex, generation: ActiveGeneration, query: np.ndarray, limit: int = 3, **more: set
) -> list[str]:
    found = database.read(lambda session: index.search(session, generation, query, limit, **more))
    return [near.sha256 for near in found]


def weighed(database: Database, question: str) -> list[fulltext.WeightedTerm]:
    terms = Words().question_terms(question)
    return database.read(lambda session: fulltext.weigh(session, terms, 3, Frequencies()))


class TestFullTextRows:
    def test_indexing_twice_changes_nothing(self, database: Database) -> None:
        """A retried job must not double the postings."""
        document = database.write(lambda session: add_document(session, "a.md", "one word", "two words"))
        ids = database.read(lambda session: session.query(Chunk.id).all())
        database.write(lambda session: fulltext.index(session, [row.id for row in ids]))
        database.write(lambda session: fulltext.index_document(session, document))

        assert weighed(database, "word")[0].chunks == 2
        check_index(database)

    def test_unindexing_before_a_change_leaves_no_trace(self, database: Database) -> None:
        """A renamed document is found by its new name and not by the old one."""
        document = database.write(lambda session: add_document(session, "oldname.md", "text", title="Old"))

        def rename(session) -> None:
            fulltext.unindex(session, document)
            fulltext.unindex(session, document)
            session.get(Document, document).path = "newname.md"
            session.flush()
            fulltext.index_document(session, document)

        database.write(rename)

        assert [term.chunks for term in weighed(database, "oldname newname")] == [0, 1]
        check_index(database)

    def test_a_rebuilt_index_equals_the_chunks(self, database: Database) -> None:
        """The index is derived: it can be made anew from what it describes."""
        database.write(lambda session: add_document(session, "a.md", "alpha", "beta"))
        database.write(lambda session: session.execute(text("INSERT INTO chunks_fts(chunks_fts) VALUES('delete-all')")))
        database.write(fulltext.rebuild)

        check_index(database)
        assert [term.chunks for term in weighed(database, "alpha beta gamma")] == [1, 1, 0]

    def test_a_word_that_stands_nowhere_tells_most(self, database: Database) -> None:
        """Its absence from a passage has to weigh in the score."""
        database.write(lambda session: add_document(session, "a.md", "common rare", "common", "common"))
        common, rare, nowhere = weighed(database, "common rare nowhere")

        assert 0 < common.idf < rare.idf < nowhere.idf


class TestGenerations:
    def test_the_same_embedder_finds_its_generation_again(self, database: Database) -> None:
        """Only the first call is fresh, so only it queues embedding."""
        first, second = generation_of(database), generation_of(database)

        assert (first.fresh, second.fresh) == (True, False)
        assert first.id == second.id

    @pytest.mark.parametrize(("model", "dim"), [("other", DIM), ("m", 32)])
    def test_another_embedder_retires_the_active_generation(self, database: Database, model: str, dim: int) -> None:
        """Vectors of two models never mix; everything is to be embedded anew."""
        old = generation_of(database)
        new = generation_of(database, model, dim)

        assert new.fresh
        assert new.id != old.id
        assert database.read(vectors.active_generation) == ActiveGeneration(new.id, model, dim)

    def test_going_back_wakes_the_old_generation_with_its_vectors(self, database: Database) -> None:
        """What was embedded once is not embedded again."""
        old = generation_of(database)
        store(database, old, ["a"], some_vectors(1))
        generation_of(database, "other")
        back = generation_of(database)

        assert (back.id, back.fresh) == (old.id, True)
        assert list(database.read(lambda s: vectors.read_by_sha(s, old.id, [sha("a")]))) == [sha("a")]

    def test_missing_texts_are_listed_once_in_reading_order(self, database: Database) -> None:
        """A text that stands twice is embedded once."""
        generation = generation_of(database)
        document = database.write(lambda session: add_document(session, "a.md", "b", "a", "b"))
        missing = database.read(lambda session: vectors.missing_shas(session, generation.id, document))

        assert missing == [hashlib.sha256(f"\n{name}".encode()).hexdigest() for name in "ba"]
        assert database.read(lambda session: vectors.unembedded_documents(session, generation.id)) == [document]

        embed_all(database, WordEmbedder("m"))
        generation = database.read(vectors.active_generation)
        assert generation is not None
        assert database.read(lambda session: vectors.missing_shas(session, generation.id, document)) == []
        assert database.read(lambda session: vectors.unembedded_documents(session, generation.id)) == []

    def test_a_vector_is_stored_once(self, database: Database) -> None:
        """Two workers may embed the same text."""
        generation = generation_of(database)
        matrix = some_vectors(2)

        assert store(database, generation, ["a", "b"], matrix) == 2
        assert store(database, generation, ["b", "c"], matrix) == 1
        assert store(database, generation, [], some_vectors(0)) == 0

    @pytest.mark.parametrize("shape", [(1, DIM), (2, DIM + 1)])
    def test_vectors_that_do_not_fit_are_refused(self, database: Database, shape: tuple[int, int]) -> None:
        """A model that changed its dimension must not reach the table."""
        generation = generation_of(database)
        with pytest.raises(ValueError, match="vectors of shape"):
            store(database, generation, ["a", "b"], np.zeros(shape, dtype=np.float32))

    def test_only_vectors_that_no_chunk_holds_are_deleted(self, database: Database) -> None:
        """Another document may hold the same text."""
        database.write(lambda session: add_document(session, "a.md", "kept"))
        embed_all(database, WordEmbedder("m"))
        generation = generation_of(database, "m")
        active = database.read(vectors.active_generation)
        assert active is not None
        kept = hashlib.sha256(b"\nkept").hexdigest()
        store(database, generation, ["gone"], some_vectors(1))

        assert database.write(lambda s: vectors.delete_unused(s, [kept, sha("gone"), sha("gone")])) == [sha("gone")]
        left = database.read(lambda session: session.execute(text("SELECT sha256 FROM vectors")).scalars().all())
        assert left == [kept]


@pytest.mark.parametrize("exact_rows", [1000, 10], ids=["whole", "bits"])
class TestVectorIndex:
    def test_the_nearest_come_first_with_their_cosines(self, database: Database, exact_rows: int) -> None:
        """As a plain comparison with every vector says."""
        generation, matrix = generation_of(database), some_vectors(60)
        store(database, generation, [str(n) for n in range(60)], matrix)
        index = VectorIndex(exact_rows=exact_rows, reranked=60)
        expected = np.argsort(-(matrix @ matrix[7]))[:5]
        found = database.read(lambda session: index.search(session, generation, matrix[7], 5))

        assert [near.sha256 for near in found] == [sha(str(n)) for n in expected]
        assert [near.cosine for near in found] == pytest.approx((matrix @ matrix[7])[expected], abs=2e-3)
        assert len(index) == 60

    def test_vectors_are_told_for_named_texts_that_have_one(self, database: Database, exact_rows: int) -> None:
        """From the database before the first search, from memory after it."""
        old, matrix = generation_of(database), some_vectors(60)
        store(database, old, [str(n) for n in range(60)], matrix)
        index = VectorIndex(exact_rows=exact_rows)
        asked = [sha("3"), sha("unknown"), sha("9")]

        for _ in range(2):
            told = database.read(lambda session: index.vectors(session, old, asked))
            assert set(told) == {sha("3"), sha("9")}
            assert told[sha("3")] == pytest.approx(matrix[3], abs=2e-3)
            assert told[sha("9")] == pytest.approx(matrix[9], abs=2e-3)
            database.read(lambda session: index.search(session, old, matrix[7], 5))
        assert database.read(lambda session: index.vectors(session, old, [])) == {}

    def test_only_allowed_texts_are_found(self, database: Database, exact_rows: int) -> None:
        """Texts without a vector among them are no error."""
        generation, matrix = generation_of(database), some_vectors(60)
        store(database, generation, [str(n) for n in range(60)], matrix)
        index = VectorIndex(exact_rows=exact_rows)
        allowed = {sha("3"), sha("9"), sha("no vector")}

        assert set(nearest(database, index, generation, matrix[7], allowed=allowed)) == {sha("3"), sha("9")}
        assert nearest(database, index, generation, matrix[7], allowed=set()) == []

    def test_what_is_stored_later_is_found_without_being_told(self, database: Database, exact_rows: int) -> None:
        """Another process may have embedded it."""
        generation, matrix = generation_of(database), some_vectors(60)
        index = VectorIndex(exact_rows=exact_rows)
        assert nearest(database, index, generation, matrix[0]) == []

        for start in range(0, 60, 6):
            store(database, generation, [str(n) for n in range(start, start + 6)], matrix[start : start + 6])
            assert nearest(database, index, generation, matrix[start + 5])[0] == sha(str(start + 5))
        assert len(index) == 60

    def test_discarded_vectors_are_gone_and_the_others_stay(self, database: Database, exact_rows: int) -> None:
        """A place that became free is filled by the last vector."""
        generation, matrix = generation_of(database), some_vectors(60)
        store(database, generation, [str(n) for n in range(60)], matrix)
        index = VectorIndex(exact_rows=exact_rows)
        nearest(database, index, generation, matrix[0])
        gone = [sha(str(n)) for n in range(0, 60, 2)]
        database.write(lambda session: vectors.delete_unused(session, gone))
        index.discard([*gone, sha("never there")])

        assert len(index) == 30
        for n in range(1, 60, 2):
            assert nearest(database, index, generation, matrix[n])[0] == sha(str(n))
        assert not set(nearest(database, index, generation, matrix[0], 60)) & set(gone)

    def test_a_text_embedded_again_after_deletion_is_found(self, database: Database, exact_rows: int) -> None:
        """Ids are never used twice, so the new row is seen even where the old one was the last."""
        generation, matrix = generation_of(database), some_vectors(12)
        store(database, generation, [str(n) for n in range(12)], matrix)
        index = VectorIndex(exact_rows=exact_rows)
        nearest(database, index, generation, matrix[0])
        database.write(lambda session: vectors.delete_unused(session, [sha("11")]))
        index.discard([sha("11")])
        store(database, generation, ["11"], matrix[11:])

        assert nearest(database, index, generation, matrix[11])[0] == sha("11")

    def test_another_generation_starts_from_nothing(self, database: Database, exact_rows: int) -> None:
        """No vector of the old one is compared with a query of the new one."""
        old, matrix = generation_of(database), some_vectors(20)
        store(database, old, [str(n) for n in range(20)], matrix)
        index = VectorIndex(exact_rows=exact_rows)
        nearest(database, index, old, matrix[0])
        new = generation_of(database, "m2", 32)
        database.write(lambda s: vectors.add_vectors(s, new.id, [sha("new")], matrix[:1, :32]))

        assert nearest(database, index, new, matrix[0, :32], 20) == [sha("new")]

    def test_searches_and_additions_at_once_agree(self, database: Database, exact_rows: int) -> None:
        """Several threads search while a worker embeds."""
        generation, matrix = generation_of(database), some_vectors(200)
        index = VectorIndex(exact_rows=exact_rows)
        store(database, generation, ["0"], matrix[:1])
        wrong: list[str] = []

        def look() -> None:
            for _ in range(30):
                if nearest(database, index, generation, matrix[0])[0] != sha("0"):
                    wrong.append("lost")

        threads = [Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(1, 200, 10):
            store(database, generation, [str(m) for m in range(n, min(n + 10, 200))], matrix[n : min(n + 10, 200)])
        for thread in threads:
            thread.join()

        assert wrong == []
        assert nearest(database, index, generation, matrix[199])[0] == sha("199")


def test_bits_and_whole_vectors_agree_on_the_best(database: Database) -> None:
    """With real likeness in the data the best hundred by bits hold the best ten."""
    generation = generation_of(database)
    rng = np.random.default_rng(3)
    centres = some_vectors(40, 1)
    matrix = centres[rng.integers(0, 40, 3000)] + 0.1 * some_vectors(3000, 2)
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    store(database, generation, [str(n) for n in range(3000)], matrix)
    whole, bits = VectorIndex(), VectorIndex(exact_rows=100, reranked=300)
    shared = 0
    for query in matrix[:20]:
        best = nearest(database, whole, generation, query, 10)
        shared += len(set(best) & set(nearest(database, bits, generation, query, 10)))

    assert shared >= 190
