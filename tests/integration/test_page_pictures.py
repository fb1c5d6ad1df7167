"""Drawing pages in the real child: limits, failures that are remembered, and the cache."""

import io
import time
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from app.ingest.extract.drawn import Asked
from app.ingest.extract.page_pictures import DrawLimits, PageNotDrawnError, PagePictures, tag
from tests.png import RULE, WASH, Pixels

SAID = "The valve has to be opened by hand."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path))
    for page in range(3):
        canvas.drawString(60, 700, f"{SAID} {page}")
        canvas.showPage()
    canvas.save()
    return path


class Opened:
    """Gives a file, and counts how often it was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = 0

    def __call__(self) -> io.BufferedReader:
        self.times += 1
        return self.path.open("rb")


def test_a_page_is_drawn_in_a_child_and_kept(path: Path) -> None:
    """The second request for the same picture reads no file; another passage is another picture."""
    pictures, opened = PagePictures(), Opened(path)
    asked = Asked(2, SAID, 2, (0, 9))
    drawn = pictures.draw("sha", asked, opened)
    assert (drawn.pages, drawn.boxed) == (3, True)
    assert Pixels(drawn.png).extent(WASH)
    assert pictures.draw("sha", asked, opened) is drawn
    assert opened.times == 1
    assert Pixels(pictures.draw("sha", Asked(2), opened).png).extent(RULE) is None
    assert opened.times == 2
    found = pictures.draw("sha", Asked(0, f"{SAID} 1", 2, (0, 9)), opened)
    assert (found.page, opened.times) == (2, 3)
    assert pictures.draw("sha", Asked(2, f"{SAID} 1", 2, (0, 9)), opened) is found
    assert tag("sha", asked) == tag("sha", asked)
    assert tag("sha", asked) != tag("other", asked) != tag("other", Asked(2))


def test_the_cache_gives_up_the_oldest(path: Path) -> None:
    """Its bound is in bytes: what was asked for last stays."""
    opened = Opened(path)
    one = len(PagePictures().draw("sha", Asked(1), opened).png)
    pictures = PagePictures(DrawLimits(cached_bytes=int(one * 2.5)))
    for page in (1, 2, 1, 3, 1, 2):
        pictures.draw("sha", Asked(page), opened)
    assert opened.times == 1 + 4


def test_a_page_that_can_not_be_drawn_is_asked_for_once(tmp_path: Path) -> None:
    """The failure is kept, as a picture would be."""
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and then nothing")
    pictures, opened = PagePictures(), Opened(broken)
    for _ in range(2):
        with pytest.raises(PageNotDrawnError):
            pictures.draw("sha", Asked(1), opened)
    assert opened.times == 1


@pytest.mark.parametrize(
    "limits", [DrawLimits(cpu_s=0.5, wall_s=5), DrawLimits(cpu_s=8, wall_s=0.7)], ids=["cpu", "wall"]
)
def test_a_page_that_takes_too_long_ends_with_its_limit(tmp_path: Path, limits: DrawLimits) -> None:
    """Drawings in drawings in drawings: a small file, a billion strokes. It ends at the latest a second after its
    limit."""
    path = tmp_path / "slow.pdf"
    canvas = Canvas(str(path))
    for level in range(10):
        canvas.beginForm(f"level{level}")
        for _ in range(10):
            canvas.doForm(f"level{level - 1}") if level else canvas.circle(300, 400, 200)
        canvas.endForm()
    canvas.doForm("level9")
    canvas.save()
    started = time.monotonic()
    with pytest.raises(PageNotDrawnError):
        PagePictures(limits).draw("slow", Asked(1), Opened(path))
    assert time.monotonic() - started < limits.wall_s + 1


def test_memory_is_limited(path: Path) -> None:
    """A child that gets too little memory ends; the app tells a failure."""
    with pytest.raises(PageNotDrawnError):
        PagePictures(DrawLimits(memory_bytes=48 << 20)).draw("sha", Asked(1), Opened(path))


def test_whoever_waits_too_long_for_a_turn_is_told(path: Path) -> None:
    """No turn, no picture: a page request never hangs."""
    with pytest.raises(PageNotDrawnError):
        PagePictures(DrawLimits(at_once=0, wall_s=0.05)).draw("sha", Asked(1), Opened(path))
