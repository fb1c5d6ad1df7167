"""What tesseract's table of words becomes: lines with places on the page."""

import pytest

from app.ingest.extract.limited import limits
from app.ingest.extract.pdf_layout import layout
from app.ingest.extract.pdf_lines import PageImage, PageLines
from app.ingest.extract.wire import pack_lines, unpack_lines
from app.ingest.tesseract import Word, lines_of, words_of

PICTURE = PageImage(pgm=b"", scale=2.0, height=800.0, pages=1)
HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"


def row(text: str, left: int, top: int, *, line: int = 1, height: int = 20, conf: float = 95.0, level: int = 5) -> str:
    width = 10 * len(text)
    return f"{level}\t1\t1\t1\t{line}\t1\t{left}\t{top}\t{width}\t{height}\t{conf}\t{text}"


def page(*rows: str) -> PageLines:
    return lines_of(words_of("\n".join([HEAD, *rows])), PICTURE)


def test_words_of_one_line_are_one_cell_and_keep_their_order() -> None:
    lines = page(row("Press", 100, 200), row("the", 160, 200), row("button", 200, 200)).lines
    assert [line.text for line in lines] == ["Press the button"]
    assert len(lines[0].cells) == 1


def test_places_are_points_from_the_foot_of_the_page() -> None:
    (line,) = page(row("here", 100, 200)).lines
    assert (line.x0, line.x1) == (50.0, 70.0)
    assert line.y == 800.0 - 220 / 2.0


def test_words_far_apart_are_cells_of_a_row() -> None:
    rows = [
        row("Cable", 100, 200),
        row("13.80", 600, 200),
        row("Module", 100, 240, line=2),
        row("9.90", 600, 240, line=2),
    ]
    blocks = layout([page(*rows)])
    assert [block.kind for block in blocks] == ["table"]
    assert "| Cable | 13.80 |" in blocks[0].text


def test_what_tesseract_is_unsure_of_is_left_out() -> None:
    assert page(row("word", 100, 200), row("~|~", 300, 200, conf=12.0)).lines[0].text == "word"


def test_rows_that_are_no_words_are_left_out() -> None:
    broken = "5\t1\t1\t1\t1\t1\tx\ty\tz\t1\t95\tword"
    assert words_of("\n".join([HEAD, row("block", 0, 0, level=2), row(" ", 0, 0), broken, "5\t1", ""])) == []


def test_letters_with_and_without_tails_make_no_difference_in_size() -> None:
    sizes = {line.size for line in page(row("aces", 0, 0, height=20), row("pages", 0, 40, line=2, height=23)).lines}
    assert len(sizes) == 1


def test_a_line_twice_as_tall_is_a_heading() -> None:
    small = [row(f"words{n}", 100, 300 + 40 * n, line=n) for n in range(2, 8)]
    blocks = layout([page(row("Manual", 100, 200, height=44), *small)])
    assert (blocks[0].kind, blocks[0].label) == ("heading", "Manual")


def test_a_picture_without_words_has_no_lines() -> None:
    assert page().lines == ()


def test_lines_come_back_from_their_json_as_they_were() -> None:
    lines = page(row("Cable", 100, 200), row("13.80", 600, 200))
    assert unpack_lines(pack_lines(lines)) == lines


def test_a_word_is_what_a_row_says() -> None:
    (word,) = words_of(f"{HEAD}\n{row('here', 7, 8, line=3)}")
    assert word == Word("here", ("1", "1", "1", "3"), 7, 8, 40, 20)


def test_the_program_may_neither_write_nor_grow_without_end() -> None:
    values = dict(limits(1 << 30, 60))
    assert sorted(values.values()) == [0, 0, 60, 1 << 30]


@pytest.mark.parametrize("text", ["<script>", "\u202eabc", "a\tb"])
def test_any_text_is_only_text(text: str) -> None:
    assert page(row(text, 0, 0)).lines[0].text == text
