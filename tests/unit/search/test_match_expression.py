"""The FTS5 expression of a question: rare terms first, nothing in it an operator."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.fulltext import MATCH_TERMS, RANKED, Match, WeightedTerm, matches
from app.search.words import Term, Words

WORDS = Words()
TOTAL = 30_000
BUDGET = 6_000
"""What a fifth of `TOTAL` is."""


def match_expression(terms: list[WeightedTerm], total: int) -> str | None:
    """The one that is asked if the others find too little."""
    return next((match.expression for match in reversed(matches(terms, total))), None)


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
    assert match_expression([weighted("common", 90), weighted("rare", 2)], TOTAL) == '"rare" OR "common"'


def test_terms_that_stand_nowhere_are_left_out() -> None:
    """They cannot match, only cost."""
    assert match_expression([weighted("nowhere", 0), weighted("here", 1)], TOTAL) == '"here"'


@pytest.mark.parametrize("terms", [[], [weighted("nowhere", 0)]])
def test_nothing_to_match_is_no_expression(terms: list[WeightedTerm]) -> None:
    """FTS5 refuses an empty expression."""
    assert match_expression(terms, TOTAL) is None


def test_common_terms_are_dropped_once_the_postings_are_used_up() -> None:
    """What keeps a query fast in a big library."""
    terms = [weighted("a", BUDGET - 10), weighted("b", 5), weighted("c", BUDGET)]

    assert match_expression(terms, TOTAL) == '"b" OR "a"'


@pytest.mark.parametrize(("total", "expression"), [(100, '"a"'), (40_000, '"a" OR "b"'), (10**7, '"a" OR "b"')])
def test_a_bigger_library_may_touch_more_rows(total: int, expression: str) -> None:
    """A fifth of it, within bounds."""
    assert match_expression([weighted("a", 3_000), weighted("b", 4_000)], total) == expression


def test_a_single_term_is_asked_however_common() -> None:
    """Else a one-word question about the library's main subject would find nothing."""
    assert match_expression([weighted("a", BUDGET * 9)], TOTAL) == '"a"'


def test_one_term_that_is_too_common_is_asked_with_others_first() -> None:
    """As many as make it rare, the rarest of them; and alone where those find too little."""
    terms = [weighted("c", BUDGET * 2), weighted("a", BUDGET + 1), weighted("b", BUDGET * 2), weighted("d", TOTAL)]

    assert matches(terms, TOTAL) == [Match('"a" AND "c"'), Match('"a"')]


def test_terms_that_stand_nearly_everywhere_narrow_nothing() -> None:
    """Asking for them, too, would only cost."""
    assert matches([weighted("a", BUDGET + 1), weighted("b", TOTAL * 2 // 3)], TOTAL) == [Match('"a"')]


def test_terms_within_the_budget_are_asked_once() -> None:
    """Any of them, as ever."""
    assert matches([weighted("a", BUDGET), weighted("b", BUDGET)], TOTAL) == [Match('"a"')]


@pytest.mark.parametrize(("chunks", "step"), [(RANKED, 1), (RANKED + 1, 2), (RANKED * 2, 2), (RANKED * 9 + 1, 10)])
def test_of_a_word_that_stands_nearly_everywhere_not_every_row_is_ranked(chunks: int, step: int) -> None:
    """So that no question costs more than so many rows."""
    assert matches([weighted("a", chunks)], chunks + 1) == [Match('"a"', step)]


def test_words_that_are_still_common_together_are_ranked_by_steps_too() -> None:
    """As many rows as they would have if each stood by chance where it does."""
    half = RANKED * 10
    assert matches([weighted("a", half), weighted("b", half)], half * 2) == [
        Match('"a" AND "b"', 5),
        Match('"a"', 10),
    ]


def test_a_pasted_page_asks_for_its_rarest_terms() -> None:
    """The number of terms has a limit."""
    expression = match_expression([weighted(f"w{n}", n + 1) for n in range(500)], TOTAL)

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
    expression = match_expression([WeightedTerm(term, 1, 1.0) for term in WORDS.question_terms(question)], TOTAL)

    if expression is not None:
        index.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()
