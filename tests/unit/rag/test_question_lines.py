"""Saved questions as lines of a file: out, in, and what is no question."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidInputError
from app.rag.evaluation import parse_questions
from app.rag.question_lines import as_line, parse_lines
from app.store.eval_questions import EvalQuestion, NewQuestion, PastQuestion, Place, RightPassage

PATHS = ["notes/backup.md", "router.md"]
BACKUP = RightPassage("library", "notes/backup.md", 10, 42, "The nightly job starts at 02:00.")
ROUTER = RightPassage("nas", "router.md", 3, 12, "51820/UDP")


def saved(new: NewQuestion) -> EvalQuestion:
    """As it is kept."""
    places = tuple(Place(1, True) for _ in new.passages)
    return EvalQuestion(
        7, new.question, new.kind, new.history, new.passages, places, new.needs_all, False, None,
        datetime(2026, 12, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    "new",
    [
        NewQuestion("When?", "question", passages=(BACKUP,)),
        NewQuestion("Which?", "lookup", passages=(BACKUP, ROUTER)),
        NewQuestion("Both?", "multi_doc", passages=(BACKUP, ROUTER), needs_all=True),
        NewQuestion("And then?", "followup", (PastQuestion("When?", "At two."),), (BACKUP,)),
        NewQuestion("Where?", "question", passages=(RightPassage(None, "router.md"),)),
        NewQuestion("Who was Ada?", "unanswerable"),
    ],
    ids=lambda new: new.question,
)
def test_a_line_comes_back_as_the_question_it_was(new: NewQuestion) -> None:
    """Passages with their places, what it leans on, and whether all are needed."""
    assert parse_lines(as_line(saved(new)), PATHS, 100) == [new]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip() != ""))
def test_any_words_survive_on_one_line(text: str) -> None:
    """Characters that end a line for some readers, too."""
    line = as_line(saved(NewQuestion(text, "question")))
    assert len(line.splitlines()) == 1
    assert [one.question for one in parse_lines(line, [], 10_000)] == [text.strip()]


def test_the_evaluation_reads_a_line_as_it_is_meant() -> None:
    """Several right passages are any of them, unless all are needed."""
    lines = [as_line(saved(NewQuestion("Q", "k", passages=(BACKUP, ROUTER), needs_all=all_))) for all_ in (False, True)]
    any_one, every = parse_questions(lines, "file")
    assert (any_one.needs_all, every.needs_all) == (False, True)
    assert any_one.documents == every.documents == ("notes/backup.md", "router.md")
    assert any_one.passages == (BACKUP.quote, ROUTER.quote)


@pytest.mark.parametrize(
    ("fields", "passages"),
    [
        ({"answer_docs": ["homelab/notes/backup.md"]}, (RightPassage(None, "notes/backup.md"),)),
        (
            {"answer_docs": ["backup.md", "gone.md"], "answer_passage": "at two"},
            (RightPassage(None, "notes/backup.md", quote="at two"), RightPassage(None, "gone.md")),
        ),
        (
            {"answer_docs": ["backup.md", "router.md"], "answer_passages": ["at two", "51820"]},
            (
                RightPassage(None, "notes/backup.md", quote="at two"),
                RightPassage(None, "router.md", quote="51820"),
            ),
        ),
        ({"answer_docs": []}, ()),
    ],
)
def test_documents_are_known_by_the_end_of_their_paths(
    fields: dict[str, object], passages: tuple[RightPassage, ...]
) -> None:
    """As `docent eval` knows them; what the library lacks keeps its name."""
    (new,) = parse_lines(json.dumps({"question": "Q", **fields}), PATHS, 100)
    assert new.passages == passages


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        "no",
        '{"question": " "}',
        '{"question": "much too long"}',
        '{"question": "Q", "passages": [{"quote": "x"}]}',
        '{"question": "Q", "passages": ["x"]}',
        '{"question": "Q", "history": [{"role": "user"}]}',
        '{"question": "Q", "answer_docs": 5}',
    ],
)
def test_a_line_that_is_no_question_is_named(line: str) -> None:
    """With its number; many are cut short."""
    with pytest.raises(InvalidInputError) as error:
        parse_lines(f'\ufeff{{"question": "Q"}}\n\n{line}', [], 10)
    assert (error.value.code, error.value.params) == ("eval_lines_invalid", {"lines": "3", "n": 1})
    with pytest.raises(InvalidInputError) as error:
        parse_lines("\n".join([line] * 7), [], 10)
    assert error.value.params == {"lines": "1, 2, 3, 4, 5 …", "n": 7}


def test_a_file_without_a_line_is_empty() -> None:
    """Rather than nothing done in silence."""
    with pytest.raises(InvalidInputError, match="eval_file_empty"):
        parse_lines(" \n\n", [], 10)
