"""The questions file, and every score."""

import json
import math
from typing import Any

import pytest

from app.rag.eval_report import as_fields, as_lines
from app.rag.evaluate import Names
from app.rag.evaluation import (
    Outcome,
    Question,
    curve,
    graded_ndcg,
    groups,
    holds_passages,
    measures,
    ndcg,
    parse_questions,
    recall_at,
    reciprocal_rank,
)
from app.rag.prompts import PastTurn


def question(**more: Any) -> Question:
    fields = {"id": "q", "text": "How?", "kind": "lookup", "group": "a", "documents": ("a.md",), "passages": ("Yes.",)}
    return Question(**{**fields, **more})


def outcome(*ranked: str, asked: Question | None = None, **more: Any) -> Outcome:
    fields = {"question": asked or question(), "ranked": ranked, "given": (), "score": 0.5, "grounded": True}
    return Outcome(**{**fields, **more})


def test_a_line_is_a_question_with_documents_passages_and_talk() -> None:
    """Everything but the question itself may be missing; a byte of another kind is not needed."""
    history = [
        {"role": "user", "content": "one?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "x"},
    ]
    lines = [
        json.dumps({"id": "d-1", "question": " how? ", "kind": "multi", "answer_docs": ["a", "b"], "set": "own",
                    "answer_passages": ["x", "y"], "history": history}),
        "",
        '{"question": "what?", "answer_docs": ["a"], "answer_passage": "z"}',
        '{"question": "why?"}',
    ]  # fmt: skip
    first, second, third = parse_questions(lines, "file")

    assert first == Question(
        "d-1", "how?", "multi", "own", ("a", "b"), ("x", "y"), True, (PastTurn("one?", "1"), PastTurn("x", ""))
    )
    assert (second.id, second.group, second.passages, second.needs_all) == ("3", "file", ("z",), False)
    assert third.documents == third.passages == ()


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"question": " "}', '{"question": "a", "history": ["b"]}'])
def test_a_line_that_is_no_question_is_named(line: str) -> None:
    """By its number, so that it can be found."""
    with pytest.raises(ValueError, match="line 2"):
        parse_questions(['{"question": "a"}', line], "file")


def test_one_right_document_is_enough_unless_all_are_needed() -> None:
    """And only the first k places count."""
    both = question(documents=("a.md", "b.md"))

    assert recall_at(outcome("x", "b.md", asked=both), 2)
    assert not recall_at(outcome("x", "y", "b.md", asked=both), 2)
    every = question(documents=("a.md", "b.md"), needs_all=True)
    assert not recall_at(outcome("a.md", "x", asked=every), 2)
    assert recall_at(outcome("a.md", "b.md", asked=every), 2)


def test_the_reciprocal_rank_is_that_of_the_first_right_document() -> None:
    """0 without one."""
    assert reciprocal_rank(outcome("x", "y", "a.md")) == pytest.approx(1 / 3)
    assert reciprocal_rank(outcome("x")) == 0


def test_ndcg_falls_with_the_place_and_ends_at_ten() -> None:
    """1 for every right document first."""
    assert ndcg(outcome("a.md", "x")) == 1
    assert ndcg(outcome("x", "a.md")) == pytest.approx(1 / math.log2(3))
    assert ndcg(outcome(*"abcdefghij", "a.md")) == 0
    assert graded_ndcg(["low", "high"], {"high": 2, "low": 1}) == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )


def test_a_passage_is_found_whatever_its_markup_and_lines() -> None:
    """Each of several has to be."""
    assert holds_passages(["Keep `7`  **daily**\nsnapshots."], ["7 daily snapshots"])
    assert not holds_passages(["one"], ["one", "two"])


def test_every_measure_has_its_own_denominator() -> None:
    """Answerable, unanswerable, with a passage, deflected, markers: each over what it is about."""
    hopeless = question(documents=(), passages=(), kind="unanswerable")
    scored = measures(
        [
            outcome("a.md", given=("Yes.",), markers=3, valid_markers=2, cited=("Yes.",)),
            outcome("x", "a.md", given=("No.",), grounded=False),
            outcome("x", asked=question(passages=()), markers=1, valid_markers=1),
            outcome("x", asked=hopeless, grounded=False),
            outcome("x", asked=hopeless),
        ],
        1,
    )

    assert {one.name: (one.total, one.of) for one in scored} == {
        "document recall@1": (1, 3),
        "document MRR": (1.5, 3),
        "document nDCG@10": (pytest.approx(1 + 1 / math.log2(3)), 3),
        "passage given": (1, 2),
        "answerable deflected": (1, 3),
        "deflection recall": (1, 2),
        "deflection precision": (1, 2),
        "valid citations": (3, 4),
        "right passage cited": (1, 1),
    }


def test_sets_are_told_apart_only_where_there_are_several() -> None:
    """All first, then sets, then kinds."""
    one, other = outcome("x"), outcome("x", asked=question(group="b", kind="exact"))

    assert list(groups([one])) == ["all", "kind lookup"]
    assert list(groups([one, other])) == ["all", "set a", "set b", "kind exact", "kind lookup"]
    assert groups([one, other])["set b"] == [other]


def test_the_curve_says_what_every_threshold_would_do() -> None:
    """A score that reaches the threshold is grounded."""
    hopeless = question(documents=(), passages=())
    points = {
        point.threshold: (point.grounded.value, point.deflected.value)
        for point in curve([outcome(score=0.5), outcome(score=0.3), outcome(asked=hopeless, score=0.4)])
    }

    assert len(points) == 21
    assert (points[0.0], points[0.4], points[0.5], points[1.0]) == ((1, 0), (0.5, 0), (0.5, 1), (0, 1))


def test_the_report_sets_two_runs_side_by_side() -> None:
    """With denominators and the difference; what one of them has nothing of is a dash."""
    runs = {"now": [outcome("a.md")], "K=1": [outcome("x", "a.md", grounded=False)]}
    lines = as_lines(runs, 1, with_curve=True)

    assert lines[0].split() == ["now", "K=1"]
    assert "  document recall@1     1.000 (1/1)           0.000 (0/1)           -1.000" in lines
    assert f"  deflection precision  {'-':<20}  0.000 (0/1)" in lines
    assert "curve K=1" in lines
    assert all(line == line.rstrip() for line in lines)
    fields = as_fields(runs, 1, with_curve=True)
    assert fields["now"]["groups"]["all"]["document recall@1"] == {"value": 1.0, "total": 1.0, "of": 1}
    assert len(fields["K=1"]["curve"]) == 21
    assert "curve" not in as_fields(runs, 1, with_curve=False)["now"]


def test_one_run_has_no_heading_and_no_difference() -> None:
    """Nothing is compared."""
    lines = as_lines({"now": [outcome("a.md")]}, 5, with_curve=False)

    assert lines[:2] == ["all (1)", "  document recall@5     1.000 (1/1)"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("notes/a.md", "notes/a.md"),
        ("a.md", None),
        ("corpus/home/b.md", "home/b.md"),
        ("b.md", "home/b.md"),
        ("ome/b.md", None),
        ("missing.md", None),
    ],
    ids=["the same", "of two", "a longer name", "a shorter name", "half a folder", "none"],
)
def test_a_document_is_known_by_the_end_of_its_path(name: str, path: str | None) -> None:
    """A folder may have been added at another level than the one the questions count from."""
    assert Names(["notes/a.md", "old/a.md", "home/b.md"]).path_of(name) == path
