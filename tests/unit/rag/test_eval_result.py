"""How a saved question fared, and which part of it can still be judged."""

from datetime import UTC, datetime

import pytest

from app.rag.eval_result import MEASURES, WORTH, K, as_question, fate
from app.rag.evaluation import Outcome, Question, holds_expected, measures
from app.store.eval_questions import EvalQuestion, PastQuestion, Place, RightPassage

ASKED = Question("1", "Q", "question", "saved", ("a.md",), ("at two",))
SILENT = Question("2", "Q", "unanswerable", "saved")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(ASKED, ("a.md",), ("It starts at two.",), 0.8, True), "passage"),
        (Outcome(ASKED, ("b.md", "a.md"), ("Else.",), 0.8, True), "document"),
        (Outcome(ASKED, ("b.md",), ("Else.",), 0.8, True), "missed"),
        (Outcome(ASKED, (*tuple("bcdef"), "a.md"), ("Else.",), 0.8, True), "missed"),
        (Outcome(ASKED, ("a.md",), (), 0.2, False), "deflected"),
        (Outcome(SILENT, ("a.md",), (), 0.2, False), "refused"),
        (Outcome(SILENT, ("a.md",), ("Else.",), 0.8, True), "answered"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_question_fares_in_one_of_six_ways(outcome: Outcome, expected: str) -> None:
    """Each has a worth, so that two settings can be told apart."""
    assert fate(outcome) == expected
    assert expected in WORTH


def test_any_right_passage_will_do_unless_all_are_needed() -> None:
    """Given or cited."""
    several = Question("3", "Q", "question", "saved", ("a.md", "b.md"), ("at two", "51820"))
    every = Question("3", "Q", "question", "saved", ("a.md", "b.md"), ("at two", "51820"), needs_all=True)
    assert holds_expected(["It starts at two."], several)
    assert not holds_expected(["It starts at two."], every)
    assert holds_expected(iter(["at two", "51820"]), every)
    assert not holds_expected([], several)


def test_every_measure_has_a_name_of_its_own() -> None:
    """A new one without a name would break the result."""
    outcomes = [
        Outcome(ASKED, ("a.md",), ("at two",), 0.8, True, 1, 1, ("at two",)),
        Outcome(SILENT, (), (), 0.1, False),
    ]
    assert {one.name for one in measures(outcomes, K)} == set(MEASURES)


def test_only_what_is_still_there_is_asked_for() -> None:
    """A document that is gone is no right one any more; words that are gone are no right passage."""
    passages = (
        RightPassage("library", "a.md", 0, 6, "at two"),
        RightPassage("library", "a.md", 9, 14, "51820"),
        RightPassage("library", "gone.md", 0, 3, "Ada"),
        RightPassage(None, "b.md"),
    )
    places = (Place(1, True), Place(1, False), Place(None, False), Place(2, True))
    past = (PastQuestion("Before?", "Yes."),)
    saved = EvalQuestion(
        7, "Q", "followup", past, passages, places, False, False, None, datetime(2026, 12, 1, tzinfo=UTC)
    )
    asked = as_question(saved)
    assert (asked.documents, asked.passages) == (("a.md", "b.md"), ("at two",))
    assert [(turn.question, turn.answer) for turn in asked.history] == [("Before?", "Yes.")]
