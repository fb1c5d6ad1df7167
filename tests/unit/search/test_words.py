"""A question's terms: those of the index itself, and none of them an operator."""

from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.words import Term, Words

WORDS = Words()
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)
"""Every code point, lone surrogates and NUL too."""


def stems(question: str) -> list[str]:
    return [term.stem for term in WORDS.question_terms(question)]


def test_terms_are_stemmed_folded_and_in_reading_order() -> None:
    """Case, accents and endings make no difference, as in the index."""
    assert [Term("restored", "restor"), Term("cafes", "cafe")] == WORDS.question_terms("Restored Cafés")


def test_stop_words_are_dropped() -> None:
    """Words that tell nothing don't search."""
    assert stems("What is the pack size of rest?") == ["pack", "size", "rest"]


def test_a_question_of_stop_words_keeps_them() -> None:
    """Better a poor search than none."""
    assert stems("who is who") == ["who", "is"]


def test_a_word_said_twice_counts_once() -> None:
    """In whatever form."""
    assert stems("backup backups run running") == ["backup", "run"]


@pytest.mark.parametrize("question", ["", "   ", "???", "\0", "\ud800", '"" * ^ ( )'])
def test_a_question_without_words_has_no_terms(question: str) -> None:
    """Nothing to search for is not an error."""
    assert stems(question) == []


def test_characters_of_languages_without_blanks_are_terms_too() -> None:
    """They must not crash; finding parts of them is another index's work."""
    assert stems("如何恢复备份") == ["如何恢复备份"]


@given(ANY_TEXT)
def test_any_text_at_all_can_be_asked(question: str) -> None:
    """No text raises, and no term holds a quote or a blank, so quoting it is safe."""
    for term in WORDS.question_terms(question):
        assert term.stem
        assert not set(term.word) & set('" \t\n\0')


def test_a_hundred_thousand_characters_can_be_asked() -> None:
    """The cap on questions is the API's; here nothing breaks."""
    assert stems("word " * 20_000) == ["word"]


def test_standing_tells_which_terms_are_in_which_passage() -> None:
    """By stem, so `backups` stands where `backup` is written."""
    found = WORDS.standing(["backup", "restor", "sftp"], ["Restoring a BACKUP.", "", "nothing here", "sftp: backups"])

    assert [{"restor", "backup"}, set(), set(), {"sftp", "backup"}] == found


@given(st.lists(ANY_TEXT, max_size=5))
def test_any_text_at_all_can_be_a_passage(passages: list[str]) -> None:
    """No passage raises, and each keeps its place."""
    assert len(passages) == len(WORDS.standing(["a", "b"], passages))


def test_nothing_of_a_call_is_left_for_the_next() -> None:
    """The scratch index is empty between calls."""
    WORDS.standing(["alpha"], ["alpha"])

    assert [set()] == WORDS.standing(["alpha"], ["beta"])


def test_threads_do_not_share_a_scratch_index() -> None:
    """Searches run on several threads at once."""
    results: list[list[str]] = []
    threads = [Thread(target=lambda: results.append(stems("alpha beta"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [["alpha", "beta"]] * 4
