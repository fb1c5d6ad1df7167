"""A page as a picture: the passage's box and the tinted sentence stand where the words are, whatever the layout."""

import io
from collections.abc import Callable
from pathlib import Path

import pypdfium2
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from app.ingest.chunking import chunk
from app.ingest.extract.drawn import Asked, Drawn
from app.ingest.extract.page_child import answer
from app.ingest.extract.pdf import extract_pdf
from app.ingest.extract.pdf_page import LONGEST_SIDE, draw_page
from app.ingest.extract.wire import HEADER_BYTES, payload_size
from tests.png import RULE, WASH, WHITE, Pixels

SIZE = 10
Draw = Callable[[Canvas], None]

LEFT = [f"left {n} column explains how pump {n} is started" for n in range(8)]
RIGHT = [f"right {n} column lists what must be checked {n}" for n in range(8)]


def pdf(path: Path, *pages: Draw, size: tuple[float, float] = A4) -> Path:
    canvas = Canvas(str(path), pagesize=size)
    for draw in pages:
        canvas.setFont("Helvetica", SIZE)
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return path


def drawn(path: Path, *args: object) -> Drawn:
    with path.open("rb") as file:
        return draw_page(file, Asked(*args))  # type: ignore[arg-type]


def area(pixels: Pixels, *colours: tuple[int, int, int], height: float = A4[1]) -> tuple[float, ...]:
    """Where the colours are, in points from the page's foot: left, bottom, right, top."""
    found = pixels.extent(*colours)
    assert found is not None
    scale = pixels.height / height
    left, top, right, bottom = (at / scale for at in found)
    return left, height - bottom, right, height - top


def test_the_sentence_is_tinted_and_its_passage_framed(tmp_path: Path) -> None:
    """Both stand around their own words, give or take two points; the letters stay black."""
    lines = ["The pump starts at noon.", "The valve has to be opened by hand.", "It stays open."]

    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 780, "Another paragraph that nobody cites.")
        for number, line in enumerate(lines):
            canvas.drawString(60, 700 - 14 * number, line)

    passage = " ".join(lines)
    start = passage.index("The valve")
    page = drawn(pdf(tmp_path / "a.pdf", draw), 1, passage, 1, (start, start + len(lines[1])))
    pixels = Pixels(page.png)

    assert (page.boxed, page.pages) == (True, 1)
    assert (page.width, page.height) == (pixels.width, pixels.height)
    assert max(pixels.width, pixels.height) == LONGEST_SIDE
    left, bottom, right, top = area(pixels, WASH)
    assert left == pytest.approx(60, abs=2)
    assert right == pytest.approx(60 + stringWidth(lines[1], "Helvetica", SIZE), abs=4)
    assert (bottom, top) == (pytest.approx(683, abs=3), pytest.approx(696, abs=3))
    left, bottom, right, top = area(pixels, RULE)
    assert 50 < left < 60
    assert right == pytest.approx(60 + stringWidth(lines[1], "Helvetica", SIZE), abs=8)
    assert 665 < bottom < 672
    assert 708 < top < 716


@pytest.mark.parametrize(("own", "other"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_in_two_columns_drawn_row_by_row_only_the_own_one_is_tinted(
    tmp_path: Path, own: list[str], other: list[str]
) -> None:
    """Extraction puts the columns one after the other; the tint follows the words, not their order."""

    def draw(canvas: Canvas) -> None:
        for number in range(8):
            canvas.drawString(60, 700 - 14 * number, LEFT[number])
            canvas.drawString(320, 700 - 14 * number, RIGHT[number])

    path = pdf(tmp_path / "a.pdf", draw)
    text = extract_pdf(path).text
    assert " ".join(own) in text
    start = text.index(own[0])
    pixels = Pixels(drawn(path, 1, text, 1, (start, start + len(" ".join(own)))).png)

    left, bottom, right, top = area(pixels, WASH)
    edge = 60 if own is LEFT else 320
    assert left == pytest.approx(edge, abs=2)
    assert right == pytest.approx(edge + max(stringWidth(line, "Helvetica", SIZE) for line in own), abs=4)
    assert (bottom, top) == (pytest.approx(600, abs=4), pytest.approx(710, abs=4))


def test_a_broken_word_is_tinted_on_both_lines(tmp_path: Path) -> None:
    """The text has the word whole; the page has its halves at the end of a line and at the start of the next."""
    lines = ["It waits for some minutes until the connec-", "tion is lost, and then it dials again. Later", "it stops."]

    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(lines):
            canvas.drawString(60, 700 - 14 * number, line)

    path = pdf(tmp_path / "a.pdf", draw)
    text = extract_pdf(path).text
    assert "connection" in text
    start = text.index("connection")
    pixels = Pixels(drawn(path, 1, text, 1, (start, start + len("connection"))).png)
    scale = pixels.height / A4[1]
    first = 60 + stringWidth(lines[0][: lines[0].index("connec")], "Helvetica", SIZE)

    def colour(x: float, y: float) -> tuple[int, int, int]:
        return pixels[x * scale, (A4[1] - y) * scale]

    assert colour(first + 2, 698.5) == WASH
    assert colour(first - 4, 698.5) == WHITE
    assert colour(60.5, 684.2) == WASH
    assert colour(60 + stringWidth("tion is lost", "Helvetica", SIZE), 684.2) == WHITE


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_turned_page_is_boxed_where_its_words_are_seen(tmp_path: Path, turned: int) -> None:
    """The page's own rotation moves the picture and the tint alike."""
    said = "The valve has to be opened by hand."
    path = pdf(tmp_path / "a.pdf", lambda canvas: canvas.drawString(60, 700, said))
    document = pypdfium2.PdfDocument(path)
    document[0].set_rotation(turned)
    path = tmp_path / "turned.pdf"
    document.save(path)
    document.close()
    page = drawn(path, 1, said, 1, (0, len(said)))
    pixels = Pixels(page.png)
    width, height = A4 if turned == 180 else A4[::-1]
    scale = pixels.height / height
    left, top, right, bottom = (at / scale for at in pixels.extent(WASH) or ())

    run, across = 60 + stringWidth(said, "Helvetica", SIZE), (A4[1] - 708, A4[1] - 698)
    expected = {
        90: (width - across[1], 60, width - across[0], run),
        180: (width - run, height - across[1], width - 60, height - across[0]),
        270: (across[0], height - run, across[1], height - 60),
    }[turned]
    assert (left, top, right, bottom) == pytest.approx(expected, abs=5)


def test_text_that_runs_upwards_is_one_box(tmp_path: Path) -> None:
    """Rotated letters stand one above the other."""
    said = "Read this along the margin of the page"

    def draw(canvas: Canvas) -> None:
        canvas.translate(100, 300)
        canvas.rotate(90)
        canvas.drawString(0, 0, said)

    pixels = Pixels(drawn(pdf(tmp_path / "a.pdf", draw), 1, said, 1, (0, len(said))).png)
    left, bottom, right, top = area(pixels, WASH)
    assert right - left < 16
    assert (bottom, top) == (
        pytest.approx(300, abs=4),
        pytest.approx(300 + stringWidth(said, "Helvetica", SIZE), abs=4),
    )


def test_a_cropped_page_is_boxed_in_its_visible_part(tmp_path: Path) -> None:
    """What is cut off moves the words, and the tint with them."""
    said = "The valve has to be opened by hand."

    def draw(canvas: Canvas) -> None:
        canvas.setCropBox((40, 600, 440, 800))
        canvas.drawString(60, 700, said)

    pixels = Pixels(drawn(pdf(tmp_path / "a.pdf", draw), 1, said, 1, (0, len(said))).png)
    left, bottom, _, top = area(pixels, WASH, height=200)
    assert left == pytest.approx(20, abs=2)
    assert (bottom, top) == (pytest.approx(98, abs=3), pytest.approx(108, abs=3))


def test_a_passage_over_two_pages_is_framed_on_both(tmp_path: Path) -> None:
    """On the second page only what is left of it; on a third nothing."""
    first = [f"On page one line {n} of the long procedure is written down" for n in range(4)]
    second = [f"On page two step {n} of it follows and comes to an end" for n in range(3)]

    def page(lines: list[str]) -> Draw:
        def draw(canvas: Canvas) -> None:
            for number, line in enumerate(lines):
                canvas.drawString(60, 700 - 14 * number, line)

        return draw

    path = pdf(tmp_path / "a.pdf", page(first), page([*second, "", "", "", "Then something else."]), page(first[:2]))
    passage = " ".join([*first, *second])
    boxed = [drawn(path, number, passage, 1) for number in (1, 2, 3)]
    assert [one.boxed for one in boxed] == [True, True, False]
    _, bottom, _, top = area(Pixels(boxed[1].png), RULE)
    assert 664 < bottom < 672
    assert top < 718
    start = passage.index("On page two step 1")
    assert drawn(path, 0, passage, 1, (start, start + 20)).page == 2
    assert drawn(path, 0, passage, 1, (0, 9)).page == 1
    assert drawn(path, 0, passage, 2).page == 2


def test_a_page_without_text_is_a_picture_without_a_box(tmp_path: Path) -> None:
    """A scan is shown as it is."""
    path = pdf(tmp_path / "a.pdf", lambda canvas: canvas.rect(100, 100, 300, 300, fill=1))
    page = drawn(path, 1, "Words that are not there at all, anywhere.", 1, (0, 5))
    assert not page.boxed
    assert Pixels(page.png).extent(RULE, WASH) is None


def test_the_tint_lies_over_what_the_page_paints(tmp_path: Path) -> None:
    """A page that fills its background first is tinted all the same, and black stays black."""

    def draw(canvas: Canvas) -> None:
        canvas.setFillColorRGB(1, 1, 1)
        canvas.rect(0, 0, *A4, fill=1, stroke=0)
        canvas.setFillColorRGB(0, 0, 0)
        canvas.setFont("Helvetica-Bold", 60)
        canvas.drawString(60, 700, said)

    said = "HIT THE LID"
    pixels = Pixels(drawn(pdf(tmp_path / "a.pdf", draw), 1, said, 1, (0, len(said))).png)
    assert pixels.extent(WASH) is not None
    assert pixels.extent((0, 0, 0)) is not None


@pytest.mark.parametrize("size", [(10, 10), (14_400, 20), (14_400, 14_400), (3, 900)])
def test_pages_of_any_size_stay_within_the_limit(tmp_path: Path, size: tuple[float, float]) -> None:
    """No page is larger than the limit, none is without pixels."""
    page = drawn(pdf(tmp_path / "a.pdf", lambda canvas: canvas.line(0, 0, 5, 5), size=size), 1)
    assert min(page.width, page.height) >= 1
    assert max(page.width, page.height) <= LONGEST_SIDE + 1


def test_what_is_no_pdf_or_has_no_such_page_is_named(tmp_path: Path) -> None:
    """The child answers with the reason."""
    path = pdf(tmp_path / "a.pdf", lambda canvas: canvas.drawString(60, 700, "One page."))
    locked = io.BytesIO()
    canvas = Canvas(locked, encrypt=StandardEncryption("secret"))
    canvas.drawString(60, 700, "One page.")
    canvas.save()
    for page, file in ((2, path.open("rb")), (1, io.BytesIO(b"%PDF-1.4 nothing")), (1, locked)):
        with file:
            reply = answer(file, {"page": page, "passage": "", "first": 0, "support": None})
        assert (b'{"error":"encrypted"}' if file is locked else b'{"error":"corrupt"}') in reply


def test_the_childs_answer_is_a_head_and_the_file(tmp_path: Path) -> None:
    """Size and flag first, then the bytes of the PNG."""
    said = "The valve has to be opened by hand."
    path = pdf(tmp_path / "a.pdf", lambda canvas: canvas.drawString(60, 700, said))
    with path.open("rb") as file:
        reply = answer(file, {"page": 1, "passage": said, "first": 1, "support": [0, 9]})
    end = HEADER_BYTES + payload_size(reply[:HEADER_BYTES])
    assert b'"boxed":true' in reply[HEADER_BYTES:end]
    assert Pixels(reply[end:]).extent(WASH)


def test_every_passage_of_a_document_is_framed_on_its_page(tmp_path: Path) -> None:
    """What extraction and chunking make of a page is found on it again, nearly every letter."""
    lines = [f"Section {n} says that pump {n} is started after {n + 2} minutes of waiting." for n in range(30)]

    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(lines):
            canvas.drawString(60, 780 - 14 * number, line)

    path = pdf(tmp_path / "a.pdf", draw, draw)
    extraction = extract_pdf(path)
    for passage in chunk(extraction):
        text = extraction.text[passage.char_start : passage.char_end]
        assert passage.page is not None
        assert drawn(path, passage.page, text, passage.page).boxed
