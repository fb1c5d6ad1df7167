"""PDF: reading order, headings, tables, pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from app.ingest.chunking import chunk
from app.ingest.extract.dispatch import SizeLimits, extract
from app.ingest.extract.pdf_layout import layout
from app.ingest.extract.pdf_lines import Cell, Line, PageLines
from tests.unit.ingest.files import put, read, reason_of

PROSE = "The quick brown fox reads the manual of the pump before it turns the valve and waits for the light. "


def pdf(path: Path, draw: Callable[[Canvas], None], **options: Any) -> Path:
    canvas = Canvas(str(path), pagesize=A4, **options)
    draw(canvas)
    canvas.save()
    return path


def lines_at(canvas: Canvas, x: float, y: float, lines: list[str], size: float = 10) -> float:
    canvas.setFont("Helvetica", size)
    for line in lines:
        canvas.drawString(x, y, line)
        y -= size * 1.3
    return y


LEFT = [f"left {n} column explains how the pump is started" for n in range(8)]

RIGHT = [f"right {n} column lists what must be checked first" for n in range(8)]


def test_pdf_pages_become_headings_paragraphs_and_tables(tmp_path: Path) -> None:
    """Large print is a heading, full lines run on, aligned cells are rows; pages are counted and named."""

    def draw(canvas: Canvas) -> None:
        for page in (1, 2):
            lines_at(canvas, 60, 760, [f"Chapter {page}"], 18)
            y = lines_at(
                canvas, 60, 720, ["This line of the paragraph fills the column it", "stands in, and this ends."]
            )
            for row in (("Name", "Role", "Port"), ("morla", "server", "22"), ("gmork", "test box", "80")):
                for x, cell in zip((60, 180, 300), row, strict=True):
                    canvas.drawString(x, y - 20, cell)
                y -= 14
            canvas.showPage()

    seen: list[tuple[int, int]] = []
    path = pdf(tmp_path / "a.pdf", draw)
    extraction = extract(path, "a.pdf", SizeLimits(), lambda done, total: seen.append((done, total)))

    assert seen == [(1, 2), (2, 2)]
    assert (extraction.pages, extraction.title, extraction.mime) == (2, "Chapter 1", "application/pdf")
    assert extraction.text_yield is not None
    assert min(extraction.text_yield) > 80
    assert [(b.kind, b.page) for b in extraction.blocks] == [
        *(("heading", 1), ("paragraph", 1), ("table", 1), ("heading", 2), ("paragraph", 2), ("table", 2)),
    ]
    assert "fills the column it stands in, and this ends." in extraction.text
    assert "| Name | Role | Port |\n| --- | --- | --- |\n| morla | server | 22 |\n| gmork | test box | 80 |" in (
        extraction.text
    )
    assert [draft.page for draft in chunk(extraction)] == [1, 2]


@pytest.mark.parametrize("by_row", [True, False])
def test_two_columns_are_read_one_after_the_other(tmp_path: Path, by_row: bool) -> None:
    """Whether the page was drawn column by column or row by row."""

    def draw(canvas: Canvas) -> None:
        lines_at(canvas, 60, 760, ["Over both columns of the page runs a heading that is as wide as they are"], 14)
        if by_row:
            for n, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
                lines_at(canvas, 60, 700 - 13 * n, [left])
                lines_at(canvas, 320, 700 - 13 * n, [right])
        else:
            lines_at(canvas, 60, 700, LEFT)
            lines_at(canvas, 320, 700, RIGHT)

    text = " ".join(read(pdf(tmp_path / "a.pdf", draw)).text.split())

    assert " ".join(LEFT) in text
    assert " ".join(RIGHT) in text
    assert text.index("left 7") < text.index("right 0")


def test_running_heads_and_page_numbers_are_left_out(tmp_path: Path) -> None:
    """What repeats in the margins of most pages is said of no page."""

    def draw(canvas: Canvas) -> None:
        for page in range(1, 6):
            lines_at(canvas, 60, 820, ["Storage handbook"], 8)
            lines_at(canvas, 60, 600, [f"Content of page {page} stands here."])
            lines_at(canvas, 280, 20, [f"page {page} of 5"], 8)
            canvas.showPage()

    extraction = read(pdf(tmp_path / "a.pdf", draw))

    assert "handbook" not in extraction.text
    assert "of 5" not in extraction.text
    assert extraction.text.count("Content of page") == 5


def line(text: str, y: float, *, x: float = 50.0, width: float = 200.0, hyphenated: bool = False) -> Line:
    return Line((Cell(text, x, x + width),), y, 10.0, hyphenated)


def test_words_broken_at_a_line_end_are_joined_and_columns_run_on() -> None:
    """A sentence goes on from the foot of one column to the head of the next; a list keeps its lines."""
    page = PageLines(
        800.0,
        (
            line("The off-site job is lim", 300, hyphenated=True),
            line("ited so that the camera", 287),
            line("stream does not stutter.", 700, x=300),
            line("- one", 600, x=300, width=30),
            line("- two", 587, x=300, width=30),
        ),
    )

    blocks = layout([page])

    assert [(block.kind, block.text) for block in blocks] == [
        ("paragraph", "The off-site job is limited so that the camera stream does not stutter."),
        ("list", "- one\n- two"),
    ]


def test_a_document_of_the_same_line_on_every_page_keeps_it() -> None:
    """Text in the margins is only left out where there is other text."""
    pages = [PageLines(800.0, (line(f"Slide {n}", 780),)) for n in range(5)]

    assert len(layout(pages)) == 5
    assert layout([PageLines(800.0, ())]) == ()


def test_a_pdf_title_of_its_own_is_the_last_resort(tmp_path: Path) -> None:
    """Without large print the document's properties name it; "untitled" names nothing."""
    named = pdf(tmp_path / "a.pdf", lambda canvas: (canvas.setTitle("Pump"), lines_at(canvas, 60, 500, [PROSE]))[0])
    unnamed = pdf(tmp_path / "b.pdf", lambda canvas: (lines_at(canvas, 60, 500, [PROSE]), None)[1])

    assert read(named).title == "Pump"
    assert read(unnamed).title == ""


def test_a_pdf_of_too_many_pages_is_refused_unread(tmp_path: Path) -> None:
    """A million pages in a small file is an attack, not a book."""
    kids = b"4 0 R " * 12_000
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 12000/Kids[3 0 R]>>",
        b"<</Type/Pages/Count 12000/Parent 2 0 R/Kids[" + kids + b"]>>",
        b"<</Type/Page/Parent 3 0 R/MediaBox[0 0 100 100]>>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(body)
    path = put(tmp_path, "a.pdf", body + b"xref\n0 5\n0000000000 65535 f \n" + table + trailer)

    assert reason_of(path) == "too_long"
