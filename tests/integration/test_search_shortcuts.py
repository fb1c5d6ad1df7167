"""Where a search takes a short way, it finds what the long way would."""

import pytest
from sqlalchemy.orm import Session

from app.search import candidates, fulltext, grams
from app.search.fulltext import Match
from app.search.hits import EVERYWHERE, SearchFilters
from app.search.hybrid import Searcher
from app.search.scope import Scope
from app.search.vectors import VectorIndex
from app.store import vectors
from app.store.engine import Database
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import add_document, add_user, embed_all

OWN = 12
BACKUP = Match('"backup"')


@pytest.fixture
def crowded(database: Database) -> Database:
    """A dozen own passages about a backup, worse and worse, and three hundred better ones of somebody else's."""

    def work(session: Session) -> None:
        add_user(session, 2, 20)
        for number in range(300):
            add_document(session, f"theirs{number}.md", f"backup {number}", collection_id=20)
        for number in range(OWN):
            add_document(session, f"own{number}.md", "backup " + "and other matters " * (number + 1))

    database.write(work)
    return database


@pytest.mark.parametrize("filters", [EVERYWHERE, SearchFilters(collections=(1,)), SearchFilters(path="own")])
def test_other_peoples_better_passages_hide_none_of_ones_own(crowded: Database, filters: SearchFilters) -> None:
    """However many of them stand before, and best first."""
    found = crowded.read(lambda session: fulltext.search(session, BACKUP, Scope(1, filters), candidates.BY_WORDS))

    assert len(found) == OWN
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert list(found) == sorted(found)


def test_the_best_are_the_same_whether_all_are_ranked_or_some(crowded: Database) -> None:
    """Where many fit, those kept in order are the first of all."""

    def few(session: Session) -> dict[int, float]:
        return fulltext.search(session, BACKUP, Scope(2), 50)

    def all_of_them(session: Session) -> dict[int, float]:
        return fulltext.search(session, BACKUP, Scope(2), 300)

    assert list(crowded.read(few).items()) == list(crowded.read(all_of_them).items())[:50]


def test_of_a_word_that_stands_nearly_everywhere_one_passage_in_three_is_ranked(crowded: Database) -> None:
    """The best of those; every document that has three passages in a row keeps one."""

    def best(session: Session) -> dict[int, float]:
        return fulltext.search(session, Match(BACKUP.expression, 3), Scope(2), 50)

    found = crowded.read(best)
    assert len(found) == 50
    assert {chunk_id % 3 for chunk_id in found} == {0}
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize("scope", [Scope(1), Scope(1, SearchFilters(collections=(1,)))])
def test_all_are_ranked_where_too_few_of_some_are_visible(crowded: Database, scope: Scope) -> None:
    """Somebody else's passages, or a part of the library."""

    def by_step(session: Session, step: int) -> dict[int, float]:
        return fulltext.search(session, Match(BACKUP.expression, step), scope, 100)

    everything = crowded.read(lambda session: by_step(session, 1))
    assert crowded.read(lambda session: by_step(session, 5)) == everything


def test_nearest_passages_of_others_hide_none_of_ones_own(crowded: Database) -> None:
    """By meaning, too: what is looked up first may all be theirs."""
    embedder = WordEmbedder()
    embed_all(crowded, embedder)
    hits = Searcher(crowded, embedder, VectorIndex()).search("backup", user_id=1, k=50)

    assert {hit.path for hit in hits} == {f"own{number}.md" for number in range(OWN)}
    assert all(hit.vector_rank for hit in hits)


def test_a_long_name_is_compared_with_the_text(database: Database) -> None:
    """Only some of its trigrams are looked up; a passage that holds these and not the name is none."""
    name = "lego_disable_cname_support"
    pieces = " ".join(name[at : at + 3] for at in range(len(name) - 2))

    def work(session: Session) -> int:
        add_document(session, "pieces.md", pieces)
        add_document(session, "name.md", f"Set {name.upper()} to true.")
        return add_document(session, "other.md", f"Or x{name}x.")

    database.write(work)
    found = database.read(lambda session: grams.holding(session, name))

    assert len(found) == 2
    assert database.read(lambda session: grams.holding(session, name, found[1:])) == found[1:]


def test_a_question_is_embedded_for_the_generation_that_serves(database: Database) -> None:
    """A vector never meets one of another model, also where the switch falls between two questions; only the question
    after a switch is embedded twice."""
    database.write(lambda session: add_document(session, "a.md", "the nightly backup"))

    def serving(embedder: WordEmbedder) -> vectors.ActiveGeneration:
        embed_all(database, embedder)
        found = database.read(vectors.active_generation)
        assert found is not None
        return found

    old, new = serving(WordEmbedder("old", 32)), serving(WordEmbedder("new", 48))
    looks = iter([old, new, new])
    embedder = WordEmbedder("new", 48)
    searcher = Searcher(database, embedder, VectorIndex(), generation=lambda _session: next(looks))
    ranks = [[hit.vector_rank for hit in searcher.search("backup", user_id=1)] for _ in range(3)]

    assert ranks == [[None], [1], [1]]
    assert embedder.queries == 2
