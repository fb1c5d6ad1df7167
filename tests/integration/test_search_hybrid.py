"""The searcher on a real database: what is found, what stays hidden, what happens when the embedder fails."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from app.search.hybrid import Hit, Searcher, SearchFilters
from app.search.query_embedder import REST_S
from app.search.vectors import VectorIndex
from app.store import vectors
from app.store.engine import Database
from app.store.models import Chunk, CollectionMember, Document
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import NOW, add_document, add_user, embed_all

SYNONYMS = {"automobile": "car", "purchase": "buy"}


class HandClock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder(synonyms=SYNONYMS)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def searcher(database: Database, embedder: WordEmbedder, clock: HandClock) -> Searcher:
    return Searcher(database, embedder, VectorIndex(), clock=clock)


@pytest.fixture
def add(database: Database) -> Callable[..., int]:
    return lambda *args, **more: database.write(lambda session: add_document(session, *args, **more))


def paths(hits: list[Hit]) -> list[str]:
    return [hit.path for hit in hits]


class TestFinding:
    def test_an_empty_library_finds_nothing(self, searcher: Searcher, embedder: WordEmbedder) -> None:
        """No error, and no model is loaded for it."""
        assert searcher.search("anything", user_id=1) == []
        assert embedder.queries == 0

    def test_words_find_before_there_are_vectors(self, searcher: Searcher, add: Callable[..., int]) -> None:
        """A document is searchable as soon as it is chunked."""
        add("a.md", "Backups run at night.", status="embedding")
        (hit,) = searcher.search("when do backups run", user_id=1)

        assert (hit.fulltext_rank, hit.vector_rank) == (1, None)
        assert hit.score == pytest.approx(1.0)

    def test_meaning_finds_what_shares_no_word(
        self, searcher: Searcher, database: Database, embedder: WordEmbedder, add: Callable[..., int]
    ) -> None:
        """That is what vectors are for."""
        add("a.md", "how to buy a car")
        add("b.md", "boats and trains")
        embed_all(database, embedder)
        hit = searcher.search("purchase automobile", user_id=1)[0]

        assert (hit.path, hit.fulltext_rank, hit.vector_rank) == ("a.md", None, 1)
        assert 0.3 < hit.score < 1

    def test_a_hit_tells_where_it_stands(self, searcher: Searcher, add: Callable[..., int]) -> None:
        """Offsets, lines, document, collection: what a citation needs."""
        document = add("dir/a.md", "First part.", "The second part names Borg.", title="Guide")
        (hit,) = searcher.search("Borg", user_id=1)

        assert (hit.document_id, hit.collection_id, hit.path, hit.title) == (document, 1, "dir/a.md", "Guide")
        assert (hit.char_start, hit.char_end, hit.line_start, hit.line_end) == (13, 40, 3, 3)
        assert hit.text == "The second part names Borg."

    @pytest.mark.parametrize("query", ["quarterly", "Handbook"])
    def test_names_and_titles_are_searched_too(self, searcher: Searcher, add: Callable[..., int], query: str) -> None:
        """A file is found by what it is called."""
        add("quarterly.md", "Nothing of that in here.", title="Handbook")

        assert paths(searcher.search(query, user_id=1)) == ["quarterly.md"]

    def test_a_term_that_is_missing_lowers_the_score(self, searcher: Searcher, add: Callable[..., int]) -> None:
        """A question about something the library lacks must not look answered."""
        for number in range(5):
            add(f"{number}.md", f"Setting up a server, part {number}.")
        (whole, *_), (half, *_) = (searcher.search(query, user_id=1) for query in ("server setting", "server jellyfin"))

        assert whole.score == pytest.approx(1.0)
        assert half.score < 0.3

    def test_the_same_text_in_two_documents_is_one_hit(
        self, searcher: Searcher, database: Database, embedder: WordEmbedder, add: Callable[..., int]
    ) -> None:
        """A copy says nothing new, whichever list it comes from."""
        add("a.md", "Backups run at night.")
        add("copy.md", "Backups run at night.")
        embed_all(database, embedder)
        (hit,) = searcher.search("backups at night", user_id=1)

        assert (hit.fulltext_rank, hit.vector_rank) == (1, 1)

    def test_one_document_does_not_crowd_out_the_others(self, searcher: Searcher, add: Callable[..., int]) -> None:
        """A few passages each, unless the filter names the document."""
        long = add("long.md", *[f"backup number {number} backup" for number in range(9)])
        add("short.md", "A word about every backup there is in this quite long sentence.")

        assert sorted(paths(searcher.search("backup", user_id=1, k=4))) == ["long.md"] * 3 + ["short.md"]
        named = searcher.search("backup", user_id=1, k=4, filters=SearchFilters(documents=(long,)))
        assert paths(named) == ["long.md"] * 4

    def test_at_most_k_hits_come_back(self, searcher: Searcher, add: Callable[..., int]) -> None:
        """However many fit."""
        for number in range(9):
            add(f"{number}.md", f"backup {number}")

        assert len(searcher.search("backup", user_id=1, k=5)) == 5


class TestVisibility:
    @pytest.fixture
    def shared(self, database: Database, embedder: WordEmbedder) -> None:
        def work(session) -> None:
            add_user(session, 2, 20)
            add_user(session, 3, 30)
            add_document(session, "mine.md", "secret backup of one")
            add_document(session, "theirs.md", "secret backup of two", collection_id=20)
            add_document(session, "third.md", "secret backup of three", collection_id=30)
            session.add(CollectionMember(collection_id=20, user_id=3, can_write=False))

        database.write(work)
        embed_all(database, embedder)

    @pytest.mark.parametrize(
        ("user_id", "seen"), [(1, ["mine.md"]), (2, ["theirs.md"]), (3, ["theirs.md", "third.md"]), (99, [])]
    )
    @pytest.mark.usefixtures("shared")
    def test_only_readable_collections_are_searched(self, searcher: Searcher, user_id: int, seen: list[str]) -> None:
        """Owned or shared, by words and by meaning; what a filter asks for changes nothing."""
        assert sorted(paths(searcher.search("secret backup", user_id=user_id))) == seen
        asked = SearchFilters(collections=(1, 20, 30))
        assert sorted(paths(searcher.search("secret backup", user_id=user_id, filters=asked))) == seen
        asked = SearchFilters(documents=(1, 2, 3))
        assert sorted(paths(searcher.search("secret backup", user_id=user_id, filters=asked))) == seen

    @pytest.mark.usefixtures("shared")
    def test_filters_narrow_what_is_searched(self, searcher: Searcher) -> None:
        """By collection, by document, by both; an empty one finds nothing."""

        def seen(**filters: tuple[int, ...]) -> list[str]:
            return sorted(paths(searcher.search("secret backup", user_id=3, filters=SearchFilters(**filters))))

        assert seen(collections=(30,)) == ["third.md"]
        assert seen(documents=(2,)) == ["theirs.md"]
        assert seen(collections=(30,), documents=(2,)) == []
        assert seen(collections=()) == []
        assert seen(documents=()) == []

    def test_a_filter_finds_by_meaning_what_is_far_down_the_whole_list(
        self, searcher: Searcher, database: Database, embedder: WordEmbedder
    ) -> None:
        """A small collection is not drowned by a big one: the condition comes before the ranking."""

        def work(session) -> None:
            add_user(session, 2, 20)
            session.add(CollectionMember(collection_id=20, user_id=1, can_write=False))
            add_document(session, "big.md", *[f"car buy {number}" for number in range(450)])
            add_document(session, "small.md", "a car of mine among many other words", collection_id=20)

        database.write(work)
        embed_all(database, embedder)
        filters = SearchFilters(collections=(20,))
        (hit,) = searcher.search("purchase automobile", user_id=1, filters=filters)

        assert (hit.path, hit.vector_rank) == ("small.md", 1)

    @pytest.mark.parametrize("change", [{"deleted_at": NOW}, {"status": "failed"}])
    def test_deleted_and_failed_documents_are_not_found(
        self,
        searcher: Searcher,
        database: Database,
        embedder: WordEmbedder,
        add: Callable[..., int],
        change: dict[str, object],
    ) -> None:
        """Even while rows of theirs are left."""
        document = add("a.md", "backup")
        embed_all(database, embedder)
        database.write(lambda session: session.query(Document).filter_by(id=document).update(change))

        assert searcher.search("backup", user_id=1) == []

    def test_a_vector_without_a_chunk_is_never_a_hit(
        self, searcher: Searcher, database: Database, embedder: WordEmbedder, add: Callable[..., int]
    ) -> None:
        """The resident index may lag behind a deletion."""
        document = add("a.md", "buy car")
        add("b.md", "boats")
        embed_all(database, embedder)
        searcher.search("purchase automobile", user_id=1)
        database.write(lambda session: session.query(Chunk).filter_by(document_id=document).delete())

        assert paths(searcher.search("purchase automobile", user_id=1)) == ["b.md"]


class TestEmbedder:
    def test_words_alone_serve_while_the_embedder_is_down(
        self,
        searcher: Searcher,
        database: Database,
        embedder: WordEmbedder,
        add: Callable[..., int],
        clock: HandClock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """One warning, a rest, then back; no search fails and none waits for a dead server again and again."""
        add("a.md", "Backups run at night.")
        embed_all(database, embedder)
        embedder.is_down = True
        caplog.set_level(logging.INFO, logger="app.search")
        for _ in range(3):
            (hit,) = searcher.search("backups", user_id=1)
            assert (hit.fulltext_rank, hit.vector_rank) == (1, None)
        assert embedder.queries == 1
        clock.seconds += REST_S
        searcher.search("backups", user_id=1)
        assert [record.levelname for record in caplog.records] == ["WARNING"]

        embedder.is_down = False
        clock.seconds += REST_S
        assert searcher.search("backups", user_id=1)[0].vector_rank == 1
        assert [record.getMessage().split()[0] for record in caplog.records] == [
            "query_embedder_down",
            "query_embedder_up",
        ]

    @pytest.mark.parametrize("other", [WordEmbedder("other"), WordEmbedder(dim=32)], ids=["model", "dim"])
    def test_vectors_of_another_embedder_are_not_compared(
        self, database: Database, embedder: WordEmbedder, add: Callable[..., int], other: WordEmbedder
    ) -> None:
        """After a change of model words serve until the new vectors are there; nothing is mixed, nothing fails."""
        add("a.md", "Backups run at night.")
        embed_all(database, embedder)
        (hit,) = Searcher(database, other, VectorIndex()).search("backups", user_id=1)

        assert (hit.fulltext_rank, hit.vector_rank) == (1, None)

    def test_a_change_of_embedder_serves_the_new_vectors(
        self, database: Database, embedder: WordEmbedder, add: Callable[..., int]
    ) -> None:
        """384 to 768 while a server runs, so to speak: the same index, other vectors."""
        add("a.md", "Backups run at night.")
        embed_all(database, embedder)
        index, wider = VectorIndex(), WordEmbedder("wider", 128)
        assert Searcher(database, embedder, index).search("backups", user_id=1)[0].vector_rank == 1
        embed_all(database, wider)

        assert Searcher(database, wider, index).search("backups", user_id=1)[0].vector_rank == 1
        assert Searcher(database, embedder, index).search("backups", user_id=1)[0].vector_rank is None
        active = database.read(vectors.active_generation)
        assert active is not None
        assert (active.model, active.dim) == ("wider", 128)
