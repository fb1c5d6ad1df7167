"""Which documents mention something: all of them, counted exactly."""

import pytest

from app.search.hits import EVERYWHERE, SearchFilters
from app.search.mentions import Mentions, facets, mentions, parts_of
from app.store.engine import Database, Session
from app.store.models import Document
from tests.integration.search_library import NOW, add_document, add_user


@pytest.fixture
def library(database: Database) -> Database:
    """Retention in some passages of three files, in another's title only, in another person's, in one that failed."""

    def work(session: Session) -> None:
        add_user(session, 2, 20)
        add_document(session, "z.md", "Retention of backups.", "Borg retains the retention.", "Nothing.", title="Z")
        add_document(session, "b.md", "Keep: the RETENTION, of logs.")
        add_document(session, "a.md", "Backup and restore; retention.")
        add_document(session, "title.md", "Something else.", title="Retention")
        add_document(session, "theirs.md", "Retention.", collection_id=20)
        add_document(session, "failed.md", "Retention.", status="failed")
        gone = session.get_one(Document, add_document(session, "gone.md", "Retention."))
        gone.deleted_at = NOW

    database.write(work)
    return database


def ask(
    database: Database, words: str, filters: SearchFilters = EVERYWHERE, limit: int = 10, offset: int = 0
) -> Mentions:
    return database.read(lambda session: mentions(session, 1, words, filters, limit, offset))


def test_every_document_is_counted_with_its_passages(library: Database) -> None:
    """Most passages first, equal ones by path; titles, other people's, failed and removed ones don't count."""
    found = ask(library, "retention")

    assert (found.total, found.of) == (3, 4)
    assert [(row.path, row.passages) for row in found.rows] == [("z.md", 2), ("a.md", 1), ("b.md", 1)]
    assert found.rows[0].title == "Z"


def test_a_page_is_a_part_and_the_total_stays(library: Database) -> None:
    """Also behind the end."""
    assert [row.path for row in ask(library, "retention", limit=1, offset=1).rows] == ["a.md"]
    beyond = ask(library, "retention", limit=5, offset=5)
    assert (beyond.total, beyond.rows) == (3, ())


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ("the retention", ["z.md", "a.md", "b.md"]),
        ("backup retention", ["a.md", "z.md"]),
        ('"retention of backups"', ["z.md"]),
        ("“retention of logs”", ["b.md"]),
        ('"backup retention"', []),
        ('retention" OR NOT * (', ["z.md", "a.md", "b.md"]),
        ("re-tention", []),
        ("?! --", []),
        ("", []),
        ("restore borg", []),
    ],
)
def test_all_words_stand_in_one_passage_and_phrases_as_they_are(
    library: Database, words: str, paths: list[str]
) -> None:
    """Nothing written is an operator; words that are in most sentences are not needed."""
    assert [row.path for row in ask(library, words).rows] == paths


def test_filters_narrow_what_is_counted_and_out_of_how_many(library: Database) -> None:
    """Another person's collection stays closed."""
    named = ask(library, "retention", SearchFilters(path="b"))
    assert ([row.path for row in named.rows], named.total, named.of) == (["b.md"], 1, 1)
    assert ask(library, "retention", SearchFilters(collections=(20,))) == Mentions(0, 0, ())


def test_a_passage_to_open_is_the_first_that_holds_the_words(library: Database) -> None:
    """So that a link leads there."""
    row = ask(library, "borg").rows[0]
    text = library.read(
        lambda session: (
            session.connection().exec_driver_sql("SELECT text FROM chunks WHERE id = ?", (row.chunk_id,)).scalar_one()
        )
    )
    assert text == "Borg retains the retention."


def test_stop_words_count_where_nothing_else_was_written() -> None:
    """And inside quotes; a page of text is cut."""
    assert parts_of("the of") == ["the", "of"]
    assert parts_of('"the end" the start the') == ["the end", "start"]
    assert len(parts_of(" ".join(f"w{n}" for n in range(100)))) == 16


class TestParts:
    """What the word index can't say."""

    @pytest.fixture
    def mixed(self, database: Database) -> Database:
        def work(session: Session) -> None:
            add_document(session, "a.md", "每晚备份", "恢复备份的方法", "Pass --log.level=debug")
            add_document(session, "b.md", "备份", "the log level", "call getUserById(1)")
            add_document(session, "c.md", "什么也没有", title="备份")

        database.write(work)
        return database

    @pytest.mark.parametrize(
        ("words", "counts"),
        [
            ("备份", {"a.md": 2, "b.md": 1}),
            ("恢复备份", {"a.md": 1}),
            ("恢复 方法", {"a.md": 1}),
            ("--log.level", {"a.md": 1}),
            ("log level", {"a.md": 1, "b.md": 1}),
            ("UserBy", {"b.md": 1}),
            ("getUserById call", {"b.md": 1}),
            ("没", {"c.md": 1}),
            ("备份 call", {}),
        ],
    )
    def test_they_are_counted_as_they_stand(self, mixed: Database, words: str, counts: dict[str, int]) -> None:
        """Exactly, also two characters and part of a name."""
        assert {row.path: row.passages for row in ask(mixed, words).rows} == counts


class TestFacets:
    """How what mentions something falls into collections, types and years."""

    def test_each_is_counted_with_all_filters_but_its_own(self, library: Database) -> None:
        """So that a click on another value shows as many as it says."""

        def work(session: Session) -> None:
            document = session.query(Document).filter_by(path="b.md").one()
            document.mime = "text/markdown"
            document.mtime_ns = 1_600_000_000 * 10**9

        library.write(work)
        filters = SearchFilters(types=("markdown",))
        found = library.read(lambda session: facets(session, 1, "retention", filters))

        assert found.types == (("markdown", 1), ("text", 2))
        assert (found.collections, found.years, found.has_words) == (((1, 1),), (("2020", 1),), True)

    @pytest.mark.parametrize("words", ["", "nowhere"])
    def test_without_a_mention_all_that_can_be_searched_is_counted(self, library: Database, words: str) -> None:
        """There is something to narrow all the same."""
        found = library.read(lambda session: facets(session, 1, words, EVERYWHERE))
        assert (found.collections, found.has_words) == (((1, 4),), False)
