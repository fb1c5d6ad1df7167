"""Counts of common words are remembered for as long as they hold."""

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.ingest.removal import remove_documents
from app.search import fulltext
from app.search.fragments import fragments_of
from app.search.frequencies import COMMON, TOLERANCE, Frequencies
from app.search.scope import Scope
from app.search.worded import by_words
from app.search.words import Words
from app.store.engine import Database
from tests.integration.search_library import add_document

EACH = 500


@pytest.fixture
def library(database: Database) -> Database:
    """As many passages about a pump as make it common, in documents of five hundred; one names a valve."""

    def work(session: Session) -> None:
        for number in range(COMMON // EACH):
            add_document(session, f"{number}.md", *(f"pump of yard {number} {row}" for row in range(EACH)))
        add_document(session, "valve.md", "the valve")

    database.write(work)
    return database


def counted(library: Database, frequencies: Frequencies) -> dict[str, int]:
    return library.read(lambda session: frequencies.counts(session, ["pump", "valv", "nowher"], fulltext.size(session)))


def test_what_stands_nowhere_is_left_out(library: Database) -> None:
    """The others are exact at first."""
    assert counted(library, Frequencies()) == {"pump": COMMON, "valv": 1}


def test_a_common_word_is_counted_again_once_enough_has_changed(library: Database) -> None:
    """Two of a hundred chunks that came and went, together; until then it is taken to stand in as large a share of
    what came. A rare one is counted every time."""
    frequencies = Frequencies()
    counted(library, frequencies)
    few = int(TOLERANCE * (COMMON + 1)) - 1
    library.write(lambda session: add_document(session, "more.md", *(f"pump and valve {row}" for row in range(few))))
    assert counted(library, frequencies) == {"pump": COMMON + few, "valv": 1 + few}
    library.write(lambda session: add_document(session, "one.md", "pump again", "and a pump"))
    assert counted(library, frequencies) == {"pump": COMMON + few + 2, "valv": 1 + few}


def test_a_question_counts_one_word_again_where_all_are_out_of_date(library: Database) -> None:
    """The one that needs it most, so that a library that grows fast slows no question; far out of date, all."""
    frequencies, stems = Frequencies(), ["pump", "yard"]

    def count() -> dict[str, int]:
        return library.read(lambda session: frequencies.counts(session, stems, fulltext.size(session)))

    def grow(*texts: str) -> None:
        library.write(lambda session: add_document(session, f"{texts[0]}.md", *texts))

    assert count() == {"pump": COMMON, "yard": COMMON}
    grow(*(f"valve {row}" for row in range(EACH)))
    exact, estimate = COMMON, round(COMMON * (COMMON + 1 + EACH) / (COMMON + 1))
    assert sorted(count().values()) == [exact, estimate]
    assert sorted(count().values()) == [exact, exact]
    grow(*(f"tap {row}" for row in range(EACH * 2)))
    assert count() == {"pump": COMMON, "yard": COMMON}


def test_what_is_exchanged_counts_twice(library: Database) -> None:
    """As many chunks as before say nothing: others may be there."""
    frequencies = Frequencies()
    counted(library, frequencies)

    def exchange(session: Session) -> None:
        remove_documents(session, [1])
        add_document(session, "other.md", *(f"tap {row}" for row in range(EACH)))

    library.write(exchange)
    assert counted(library, frequencies)["pump"] == COMMON - EACH


def test_passages_with_more_of_the_question_come_first_where_its_words_are_common(library: Database) -> None:
    """And where too few hold all of it, the others are found, too."""

    def found(question: str) -> list[str]:
        words = library.read(lambda session: by_words(session, Words(), Frequencies(), question, Scope(1)))
        ids = [one.chunk_id for one in words.found]
        return [str(library.read(lambda session, one=one: session.execute(_TEXT, {"id": one}).scalar())) for one in ids]

    assert not fragments_of("pump yard")
    best = found("which pump is in yard 3?")
    assert len(best) == 100
    assert all("yard 3 " in passage for passage in best)
    assert "valve" in found("pump valve")[0]


_TEXT = text("SELECT text FROM chunks WHERE id = :id")
