"""Matching lines and the stretches around them: numbers, offsets, limits."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.rag.tools.patterns import LinePattern
from app.rag.tools.scanning import BLOCK, KEPT, STRETCH_CHARS, Scan, scan, stretches

TEXT = "one\n\ntwo é x\nthree\nfour x\nfive\n"


def walk(text: str, pattern: str, *, late_after: int = 10**9, most: int = 10_000) -> Scan:
    looks = iter(range(10**9))
    return scan(text, LinePattern(pattern, None), is_late=lambda: next(looks) >= late_after, most=most)


def shown(text: str, pattern: str, context: int = 0) -> list[str]:
    return [text[part.start : part.end] for part in stretches(text, walk(text, pattern).lines, context)]


def test_lines_are_numbered_and_placed_in_characters() -> None:
    """Also behind characters of several bytes."""
    found = walk(TEXT, "x$")
    assert [(line.number, TEXT[line.start : line.end]) for line in found.lines] == [(3, "two é x"), (5, "four x")]
    assert [TEXT[line.match_start : line.match_end] for line in found.lines] == ["x", "x"]
    assert (found.count, found.finished) == (2, True)


def test_neighbours_are_shown_and_meet() -> None:
    """Stretches that touch become one; blank lines at the edges are left out."""
    assert shown(TEXT, "x$") == ["two é x", "four x"]
    assert shown(TEXT, "x$", 1) == ["two é x\nthree\nfour x\nfive"]
    assert shown(TEXT, "^one", 1) == ["one"]
    assert shown(TEXT, "nothing") == []


def test_a_long_line_is_cut_around_what_fits() -> None:
    """From the beginning of a word."""
    text = "word " * 2000 + "needle " + "word " * 2000
    (part,) = shown(text, "needle", 3)
    assert part.startswith("word ")
    assert "needle" in part
    assert len(part) <= STRETCH_CHARS


def test_more_lines_than_can_be_shown_are_counted() -> None:
    """And those beyond what is counted end the walk."""
    text = "x\n" * 1000
    assert (walk(text, "x").count, len(walk(text, "x").lines), walk(text, "x").finished) == (1000, KEPT, True)
    assert (walk(text, "x", most=7).count, walk(text, "x", most=7).finished) == (7, False)
    assert walk("x\n" * 7, "x", most=7).finished


def test_a_walk_ends_when_it_is_late() -> None:
    """Between blocks, and among many matches."""
    assert not walk("a\n" * BLOCK, "zzz", late_after=1).finished
    assert walk("x\n" * 3000, "x", late_after=2).count < 3000
    assert walk("", "x", late_after=0).finished


@given(
    st.text(alphabet="ab\né😀 ", max_size=80),
    st.sampled_from(["a", "^$", "b*", "é", "a.b", "\\C", "$", "[^a]"]),
    st.integers(0, 3),
)
def test_every_line_that_fits_is_found_once(text: str, pattern: str, context: int) -> None:
    """Python's own engine on each line is the measure; stretches are ordered, disjoint and cover every line found."""
    found = walk(text, pattern)
    lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []
    if pattern != "\\C":
        assert [line.number for line in found.lines] == [
            n for n, line in enumerate(lines, 1) if re.search(pattern, line)
        ]
    parts = stretches(text, found.lines, context)
    assert [n for part in parts for n in part.matches] == [line.number for line in found.lines]
    for line in found.lines:
        assert text[line.start : line.end] == lines[line.number - 1]
    for before, after in pairwise(parts):
        assert before.end < after.start
    for part in parts:
        assert text.count("\n", 0, part.start) + 1 == part.line
