"""The FTS5 expression of a question: rare terms first, nothing in it an operator."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.fulltext import MATCH_TERMS, POSTINGS, WeightedTerm, match_expression
from app.search.words import Term, Words

WORDS = Words()


def weighted(word: str, chunks: int) -> WeightedTerm:
    return WeightedTerm(Term(word, word), chunks, 1.0)


@pytest.fixture(scope="module")
def index() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')")
    connection.execute("INSERT INTO t VALUES ('NEAR and OR are words here, so is text')")
    return connection


def test_terms_are_joined_by_or_rarest_first() -> None:
    """Any term may match; the rarest is never left out."""
    assert match_expression([weighted("common", 90), weighted("rare", 2)]) == '"rare" OR "common"'


def test_terms_that_stand_nowhere_are_left_out() -> None:
    """They cannot match, only cost."""
    assert match_expression([weighted("nowhere", 0), weighted("here", 1)]) == '"here"'


@pytest.mark.parametrize("terms", [[], [weighted("nowhere", 0)]])
def test_nothing_to_match_is_no_expression(terms: list[WeightedTerm]) -> None:
    """FTS5 refuses an empty expression."""
    assert match_expression(terms) is None


def test_common_terms_are_dropped_once_the_postings_are_used_up() -> None:
    """What keeps a query fast in a big library."""
    terms = [weighted("a", POSTINGS - 10), weighted("b", 5), weighted("c", POSTINGS)]

    assert match_expression(terms) == '"b" OR "a"'


def test_a_single_term_is_asked_however_common() -> None:
    """Else a one-word question about the library's main subject would find nothing."""
    assert match_expression([weighted("a", POSTINGS * 9)]) == '"a"'


def test_a_pasted_page_asks_for_its_rarest_terms() -> None:
    """The number of terms has a limit."""
    expression = match_expression([weighted(f"w{n}", n + 1) for n in range(500)])

    assert expression is not None
    assert [f'"w{n}"' for n in range(MATCH_TERMS)] == expression.split(" OR ")


@given(
    st.one_of(
        st.text(alphabet=st.characters(exclude_categories=()), max_size=100),
        st.lists(st.sampled_from(["NEAR(", '"', "OR", "AND", "NOT", "*", "^", "text:", "{a b}:", "-", "+", "\0"])).map(
            " ".join
        ),
    )
)
def test_fts5_takes_the_expression_of_any_text(index: sqlite3.Connection, question: str) -> None:
    """No operator, column filter or broken quote of a user reaches the query."""
    expression = match_expression([WeightedTerm(term, 1, 1.0) for term in WORDS.question_terms(question)])

    if expression is not None:
        index.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()
