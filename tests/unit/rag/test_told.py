"""Answers that no model writes: an outline of a document, and a count from the catalogue."""

import asyncio

import pytest

from app.catalog import load_catalog
from app.rag.catalogue import Mentioning, at_mention, count_answer, mentions_answer
from app.rag.citations import check
from app.rag.outline import MOST, outline, outline_texts
from app.rag.pieces import DocRef, Passage
from app.rag.tokens import estimate_tokens
from app.rag.told import Told, as_words, told_pieces
from app.rag.whole_plan import Place, WholeText, passages_of_document
from app.render.markdown import markdown_html
from tests.unit.rag.reading_kit import chaptered

CATALOG = load_catalog()


def passage(text: str, n: int = 1) -> Passage:
    return Passage(n, n, 100 + n, f"a/{n}.md", f"Plan {n}", "Plan › Jobs", None, text, 40, 40 + len(text), 3, 4, 1.0)


def outlined(*parts: tuple[str, str]) -> Told:
    text, places = "", []
    for number, (heading, part) in enumerate(parts):
        places.append(Place(100 + number, heading, None, len(text)))
        text += part + "\n\n"
    whole = WholeText(DocRef(7, "plan.md"), "The *plan*", text, places)
    return outline("The *plan*", passages_of_document(whole, estimate_tokens, most=10_000), outline_texts(CATALOG))


def test_an_outline_is_the_headings_with_a_sentence_each() -> None:
    """In the document's order and depth, every line cited, every marker valid; it says that no model is connected."""
    filler = "It is looked after by hand on Mondays. " * 20
    told = outlined(
        ("Plan", "# Plan\n\nThis plan keeps the house dry all year. " + filler),
        ("Plan › Pumps", "## Pumps\n\nNote:\n\nThe pump runs at two every night. " + filler),
        ("Plan › Pumps › Spare", "### Spare\n\n| Part | Place |\n| --- | --- |\n| Spare pump | attic |\n" + filler),
        ("Plan › Wells", "## Wells\n\nWells are looked at [once](x.md) a year. " + filler),
    )
    assert told.text.splitlines() == [
        CATALOG.t("whole.outline", title="The \\*plan\\*"),
        "",
        "- **Plan**: This plan keeps the house dry all year. [1]",
        "  - **Pumps**: The pump runs at two every night. [2]",
        "    - **Spare**: It is looked after by hand on Mondays. [3]",
        "  - **Wells**: Wells are looked at once a year. [4]",
    ]
    checked = check(told.text, told.passages)
    assert (checked.valid, checked.dropped) == (4, 0)
    assert [one.n for one in told.passages] == [1, 2, 3, 4]
    assert str(markdown_html(told.text)).count("<li>") == 4


def test_a_long_document_shows_its_main_parts_and_says_so() -> None:
    """No outline has hundreds of lines; long sentences are cut."""
    whole = chaptered(60)
    told = outline("Plan", passages_of_document(whole, estimate_tokens, most=10_000), outline_texts(CATALOG))
    assert len(told.passages) == MOST
    assert told.text.endswith(f"{MOST} of 60 parts are shown.")
    (line,) = [line for line in outlined(("", "word " * 200)).text.splitlines() if line.startswith("- ")]
    assert len(line) < 340
    assert line.endswith("… [1]")


def test_a_document_without_a_sentence_has_an_empty_outline() -> None:
    """A block of code is none."""
    assert outlined(("", "```\nx = 1\n```")).passages == ()


def test_a_count_has_its_denominator_and_a_line_for_each_document() -> None:
    """Each with how many passages mention it and where they do; two documents of one title are told apart."""
    text = "The job runs at two. Retention is thirty days. It is kept."
    rows = [
        Mentioning("Plan", "a/1.md", 3, passage(text)),
        Mentioning("Plan", "b/2.md", 1, passage(text, 2)),
        Mentioning("On_*stars*", "c.md", 1, passage(text, 3)),
    ]
    told = mentions_answer(CATALOG, "retention", 12, 429, rows)
    assert told.text.splitlines() == [
        "12 of 429 documents mention “retention”:",
        "",
        "- **Plan (a/1.md)**, 3 passages: Retention is thirty days. [1]",
        "- **Plan (b/2.md)**, 1 passage: Retention is thirty days. [2]",
        "- **On\\_\\*stars\\***, 1 passage: Retention is thirty days. [3]",
        "",
        "9 more are not listed here.",
    ]
    assert [one.text for one in told.passages] == ["Retention is thirty days."] * 3
    first = told.passages[0]
    assert (first.char_start, first.char_end, first.n) == (40 + 21, 40 + 46, 1)
    checked = check(told.text, told.passages)
    assert (checked.valid, checked.dropped) == (3, 0)
    assert all(cite.support for cite in checked.cites)
    assert mentions_answer(CATALOG, "x", 1, 5, rows[:1]).text.startswith("1 of 5 documents mentions “x”:")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            mentions_answer(CATALOG, '"keep within"', 0, 429, []),
            "None of the 429 documents here mentions “keep within”.",
        ),
        (mentions_answer(CATALOG, "x", 0, 1, []), "The one document here does not mention “x”."),
        (mentions_answer(CATALOG, "x", 0, 0, []), CATALOG.t("answer.nothing_to_read")),
        (count_answer(CATALOG, 429), "429 documents can be searched here."),
        (count_answer(CATALOG, 0), CATALOG.t("answer.nothing_to_read")),
    ],
)
def test_nothing_found_is_a_plain_sentence(told: Told, expected: str) -> None:
    """With how many documents that was, or that there are none."""
    assert told == Told(expected)


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("One.\n\nBackups of volumes run. Two.", "backup", "Backups of volumes run."),
        ("Keep it. We keep within a day. Keep.", '"keep within"', "We keep within a day."),
        ("备份每天运行。保留三十天。", "保留", "保留三十天。"),
        ("Nothing like it.", "zebra", "Nothing like it."),
    ],
)
def test_the_first_sentence_that_mentions_it_stands_for_a_document(text: str, words: str, expected: str) -> None:
    """In any inflection; a phrase before its words; the whole passage where no sentence shows it."""
    one = at_mention(passage(text), words)
    assert one.text == expected
    assert text[one.char_start - 40 : one.char_end - 40] == expected
    assert one.line_start == 3 + text[: one.char_start - 40].count("\n")


def test_a_told_answer_streams_line_by_line_and_names_stay_text() -> None:
    """All together it is the text; no title becomes markup."""

    async def collected() -> list[str]:
        return [piece.text async for piece in told_pieces(Told("a\n\nb [1]"))]

    assert asyncio.run(collected()) == ["a\n", "\n", "b [1]"]
    hostile = "<img src=x>  [1] **b** `c` # ~~d~~ | \\"
    html = str(markdown_html(as_words(hostile)))
    assert not any(tag in html for tag in ("<img", "<strong", "<code", "<del", "<h"))
    assert "[1] **b** `c` # ~~d~~ |" in html
