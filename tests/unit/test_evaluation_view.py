"""What the evaluation page says of runs and questions."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.catalog import load_catalog
from app.store.eval_questions import EvalQuestion, Place, RightPassage
from app.store.eval_runs import RunRow
from app.web.evaluation_view import (
    Narrowed,
    narrowed,
    question_view,
    result_view,
    run_view,
    search_href,
    settings_words,
)

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
CATALOG = load_catalog()
SETTINGS = {"retrieval_top_k": 12, "retrieval_min_score": 0.35, "llm_context_tokens": None, "words_only": False}


def question(number: int, text: str, *places: Place, kind: str = "question") -> EvalQuestion:
    passages = tuple(RightPassage("library", f"{at}.md", 0, 5, "words") for at, _ in enumerate(places))
    return EvalQuestion(number, text, kind, (), passages, places, False, False, None, NOW)


FOUND = question(1, "Found?", Place(4, True))
LOST = question(2, "Lost?", Place(None, False))
SILENT = question(3, "Silent?", kind="my own kind")


def run(*sides: dict[str, Any], fates: list[list[str]]) -> RunRow:
    result = {
        "left_out": 1,
        "without_words": 0,
        "sides": [{"settings": SETTINGS, "groups": {"all": side, "kind lookup": side}} for side in sides],
        "questions": [{"id": number, "sides": some} for number, some in enumerate(fates, 1)],
    }
    changes = {"retrieval_top_k": 3} if len(sides) > 1 else {}
    return RunRow(1, "done", changes, 2, 2, result, None, NOW, NOW)


def test_figures_stand_side_by_side_with_what_they_are_of() -> None:
    """A measure that one of them lacks has no difference; what comes out equal is said to be."""
    a = {"recall": {"total": 1, "of": 2}, "mrr": {"total": 1.5, "of": 2}, "valid": {"total": 3, "of": 3}}
    b = {"recall": {"total": 2, "of": 2}, "mrr": {"total": 1.5, "of": 2}}
    view = result_view(run(a, b, fates=[]), [], CATALOG, NOW)
    assert view is not None
    every, kind = view.groups
    assert (every.name, kind.name) == ("All questions", "lookup")
    shown = [(row.label, *((cell.value, cell.of) for cell in row.cells), row.difference) for row in every.rows]
    assert shown == [
        ("Right document among the first 5", ("0.50", "1 of 2"), ("1.00", "2 of 2"), "+0.50"),
        ("Rank of the right document (MRR)", ("0.75", "over 2"), ("0.75", "over 2"), "0"),
        ("Citations that name a passage", ("1.00", "3 of 3"), ("", ""), ""),
    ]
    assert view.notes == ("1 question is left out: its document is not in the library any more.",)


def test_questions_that_fared_differently_are_listed_with_the_better_side() -> None:
    """Those that were removed since are not."""
    fates = [["passage", "missed"], ["missed", "document"], ["refused", "refused"], ["refused", "answered"]]
    view = result_view(run({}, {}, fates=fates), [FOUND, LOST, SILENT], CATALOG, NOW)
    assert view is not None
    assert [(one.question, one.better) for one in view.differences] == [("Found?", 0), ("Lost?", 1)]
    assert view.differences[0].fates == ("right passage given", "right document not found")


def test_a_run_without_a_result_says_how_it_ended() -> None:
    """And how many questions it was to ask."""
    cancelled = RunRow(1, "cancelled", {"words_only": True}, 3, 8, None, None, NOW, NOW)
    assert result_view(cancelled, [], CATALOG, NOW) is None
    row = run_view(cancelled, CATALOG, NOW, current=False)
    assert (row.state, row.questions, row.compared, row.has_result) == ("cancelled", "4", "words only", False)
    assert {cell.value for cell in row.cells} == {""}
    assert run_view(run({}, fates=[["passage"]]), CATALOG, NOW, current=True).state == ""


def test_settings_are_named_as_an_operator_sets_them() -> None:
    """A zero is a value."""
    assert settings_words(SETTINGS, CATALOG) == "RETRIEVAL_TOP_K 12, RETRIEVAL_MIN_SCORE 0.35"
    assert settings_words({"retrieval_min_score": 0.0, "words_only": True}, CATALOG) == (
        "RETRIEVAL_MIN_SCORE 0, words only"
    )


@pytest.mark.parametrize(
    ("q", "which", "expected"),
    [
        ("", "", [3, 2, 1]),
        ("FOUND", "", [1]),
        ("", "answerable", [1]),
        ("", "unanswerable", [3]),
        ("", "gone", [2]),
        ("found", "gone", []),
    ],
)
def test_the_list_can_be_narrowed(q: str, which: Narrowed, expected: list[int]) -> None:
    """By words and by sort, the newest first."""
    assert [one.id for one in narrowed([FOUND, LOST, SILENT], q, which)] == expected


def test_a_question_says_what_is_gone() -> None:
    """A kind that Docent does not know keeps its name."""
    assert question_view(FOUND, CATALOG).expected[0].href == "/documents/4"
    assert question_view(LOST, CATALOG).expected[0].problem == "not in the library any more"
    changed = question_view(question(4, "Q", Place(4, False)), CATALOG)
    assert (changed.expected[0].problem, changed.gone) == ("these words are not in it any more", False)
    assert (question_view(SILENT, CATALOG).kind, question_view(SILENT, CATALOG).expected) == ("my own kind", ())


def test_a_long_question_is_cut_for_the_search() -> None:
    """The search takes 400 characters."""
    assert search_href("a\n b") == "/library?q=a+b"
    assert len(search_href("x" * 900)) == len("/library?q=") + 400
