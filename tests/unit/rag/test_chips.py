"""The grammar of chips: what is a mark, what never is, and the two texts that a question becomes."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.rag.chips import MARKS_MAX, Chip, in_words, marks_in, searched_text, written

TODAY = date(2026, 12, 1)


def read(question: str) -> list[tuple[str, str, str]]:
    """Kind, name and the mark as it stands in the question, read in the most likely way."""
    return [(mark.kind, mark.name, question[mark.start : mark.readings[0].end]) for mark in marks_in(question, TODAY)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does @router.md say?", ("document", "router.md", "@router.md")),
        ("@router.md: which ports?", ("document", "router.md", "@router.md")),
        ("Ports (see @net/router.md), please", ("document", "net/router.md", "@net/router.md")),
        ("Is that in @router.md.", ("document", "router.md", "@router.md")),
        ("the owner of @router.md's ports", ("document", "router.md", "@router.md")),
        ('Sum up @"two words.pdf", briefly', ("document", "two words.pdf", '@"two words.pdf"')),
        ("Sum up @“two words.pdf”", ("document", "two words.pdf", "@“two words.pdf”")),
        ("Fasse @„zwei Worte.pdf“ zusammen", ("document", "zwei Worte.pdf", "@„zwei Worte.pdf“")),
        ("@'5\" disks.md' please", ("document", '5" disks.md', "@'5\" disks.md'")),
        ("Was steht in @Größe.md?", ("document", "Größe.md", "@Größe.md")),
        ("anything in @projects/ about it", ("folder", "projects/", "@projects/")),
        ("anything in @projects/2024/?", ("folder", "projects/2024/", "@projects/2024/")),
        ("what is due #house-papers", ("collection", "house-papers", "#house-papers")),
        ('what is due in #"House papers"?', ("collection", "House papers", '#"House papers"')),
        ("invoices type:PDF", ("type", "pdf", "type:PDF")),
        ("invoices type:pdf,docx.", ("type", "pdf,docx", "type:pdf,docx")),
        ("请总结 @notes.md", ("document", "notes.md", "@notes.md")),
        ("请总结@notes.md，谢谢", ("document", "notes.md", "@notes.md")),
    ],
)
def test_what_a_question_names_is_read(question: str, expected: tuple[str, str, str]) -> None:
    """With quotes, in brackets, before punctuation, in any script."""
    assert read(question) == [expected]


def test_where_chinese_goes_on_without_a_space_the_shorter_name_is_a_reading_too() -> None:
    """`@notes.md的内容` may be one name or a name and more text; both are tried, the whole first."""
    (mark,) = marks_in("请总结@notes.md的内容", TODAY)
    assert [reading.name for reading in mark.readings] == ["notes.md的内容", "notes.md"]
    assert mark.readings[1].end == len("请总结@notes.md")


@pytest.mark.parametrize(
    "question",
    [
        "Write to a@b.c or to first.last@example.org.",
        "## Heading\n\n# Another heading",
        "issue #1 and #42",
        "What does `@router.md` mean, and `#library`?",
        "```\n@router.md #library type:pdf after:2024\n```",
        "~~~sh\n# comment\nssh root@nas\n~~~",
        "https://example.org/@user/#part",
        "A&#38;B and x=#y",
        "@ # @@ ## @, #. @/ #-",
        "prototype:pdf hereafter:2024",
        "after:noon before:13 since:2024-13 until:2024-02-30 since:1200 until:3000",
        "No marks at all.",
        "",
    ],
)
def test_what_only_looks_like_a_mark_is_none(question: str) -> None:
    """Mail addresses, headings, issue numbers, code, links, days that don't exist."""
    assert read(question) == []


@pytest.mark.parametrize(
    "question",
    ["@media (max-width: 40em) applies when?", "#include <stdio.h>", "colour #a1b2c3", "@Override(x) void f"],
)
def test_what_code_writes_is_not_taken_for_a_wish(question: str) -> None:
    """It may still be the name of something; if it is not, nothing is said about it."""
    assert [mark.is_meant for mark in marks_in(question, TODAY)] == [False]


@pytest.mark.parametrize("question", ["what is in @foo", "@foo what is in it", "#foo ports", '@"a b" ports', "(@foo)"])
def test_a_name_that_stands_alone_is_taken_for_a_wish(question: str) -> None:
    """So that it can be said that nothing is called so."""
    assert [mark.is_meant for mark in marks_in(question, TODAY)] == [True]


@pytest.mark.parametrize(
    ("written", "kind", "day"),
    [
        ("after:2024-05-01", "since", date(2024, 5, 1)),
        ("since:2024-05", "since", date(2024, 5, 1)),
        ("after:2024", "since", date(2024, 1, 1)),
        ("since:30d", "since", date(2026, 11, 1)),
        ("since:2w", "since", date(2026, 11, 17)),
        ("since:9999y", "since", date(1970, 1, 1)),
        ("since:yesterday", "since", date(2026, 11, 30)),
        ("before:2024", "until", date(2024, 1, 1)),
        ("before:2024-05-02", "until", date(2024, 5, 2)),
        ("until:2024", "until", date(2025, 1, 1)),
        ("until:2024-02", "until", date(2024, 3, 1)),
        ("until:today", "until", date(2026, 12, 2)),
    ],
)
def test_days_are_read_as_periods(written: str, kind: str, day: date) -> None:
    """`since` names the first day that counts, `until` the first that does not."""
    (mark,) = marks_in(f"invoices {written}?", TODAY)
    assert (mark.kind, mark.day) == (kind, day)


def test_no_more_marks_are_read_than_may_be_looked_up() -> None:
    """A question of a thousand names costs as much as one of sixteen."""
    assert len(marks_in(" ".join(f"@file{n}.md" for n in range(1000)), TODAY)) == MARKS_MAX


def chip(question: str, mark: str, words: str) -> Chip:
    start = question.index(mark)
    return Chip("document", words, words, start, start + len(mark))


@pytest.mark.parametrize(
    ("question", "mark", "words", "searched", "plain"),
    [
        ("What does @a.md say on ports?", "@a.md", "a.md", "What does say on ports?", "What does a.md say on ports?"),
        ("Which ports are in @a.md?", "@a.md", "a.md", "Which ports are in?", "Which ports are in a.md?"),
        ("@a.md which ports?", "@a.md", "a.md", "which ports?", "a.md which ports?"),
        ("Which ports? type:pdf", "type:pdf", "", "Which ports?", "Which ports?"),
        ("ports since:30d open", "since:30d", "", "ports open", "ports open"),
        ("@a.md", "@a.md", "a.md", "a.md", "a.md"),
        ("type:pdf", "type:pdf", "", "type:pdf", "type:pdf"),
    ],
)
def test_a_chip_is_not_searched_for_and_the_model_reads_its_name(
    question: str, mark: str, words: str, searched: str, plain: str
) -> None:
    """Only where nothing else is left, the name itself is searched for."""
    chips = [chip(question, mark, words)]
    assert searched_text(question, chips) == searched
    assert in_words(question, chips) == plain


def test_a_carried_chip_leaves_the_text_alone() -> None:
    """It stands in an earlier question."""
    carried = replace(chip("@a.md", "@a.md", "a.md"), start=0, end=0, carried=True)
    assert searched_text(" and its ports ", [carried]) == in_words(" and its ports ", [carried]) == " and its ports "


@given(
    st.text(
        alphabet=st.sampled_from("@#\"'“”„`~/\\.:,-_ \n\tab19éß的\u0301\u202e\x00type:afterbefore2024dwmy"), max_size=80
    )
)
@example('@"')
@example("#“”")
@example("since:9999w since:99999d")
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Marks lie inside of the text, in order, apart; each of their readings begins with their sign."""
    end = 0
    for mark in marks_in(text, TODAY):
        assert end <= mark.start
        for reading in mark.readings:
            assert mark.start < reading.end <= len(text)
            assert reading.name.strip()
        end = max(reading.end for reading in mark.readings)


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("net/router.md", "@net/router.md"),
        ("two words.pdf", '@"two words.pdf"'),
        ("o'brien.md", '@"o\'brien.md"'),
        ('5" disks.md', '@“5" disks.md”'),
        ("report (1).pdf", '@"report (1).pdf"'),
        ("what?", '@"what?"'),
        ("a@b", '@"a@b"'),
        ("两个，文件.md", '@"两个，文件.md"'),
        ("<b>.md", '@"<b>.md"'),
        ("a\nb.md", None),
        ("\"“„«'», all.md", None),
        ("---", None),
    ],
)
def test_a_name_is_written_so_that_it_is_read_again(name: str, mark: str | None) -> None:
    """In quotes where it has a space or anything that ends a name; not at all where no quotes are left."""
    assert written("@", name) == mark


@given(st.text(alphabet=st.sampled_from("ab @#\"'“”„«»(.),/\n的，1"), max_size=12))
def test_what_is_written_is_one_mark_of_that_name(name: str) -> None:
    """Inside of a sentence, for either sign."""
    for sign in ("@", "#"):
        mark = written(sign, name)  # pyright: ignore[reportArgumentType] - both are signs
        if mark is not None:
            (read,) = marks_in(f"see {mark} there", TODAY)
            assert read.name == name


@given(st.text(max_size=200))
def test_without_chips_a_text_is_unchanged(text: str) -> None:
    """What is asked and searched is then what was typed."""
    assert searched_text(text, ()) == in_words(text, ()) == text
