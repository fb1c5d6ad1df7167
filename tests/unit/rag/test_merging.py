"""Neighbouring passages become one, and stay exact slices of their document."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.rag.context import fit
from app.rag.merging import merged
from app.rag.pieces import Passage

DOCUMENT = "# Guide\n\nFirst part.\n\nSecond part.\n   \nThird part. It is long.\n"


def passage(start: int, end: int, *, document: int = 1, score: float = 0.5, heading: str = "Guide") -> Passage:
    """A slice of DOCUMENT; its chunk's id is where it begins."""
    text = DOCUMENT[start:end]
    line = DOCUMENT.count("\n", 0, start) + 1
    return Passage(
        n=9,
        document_id=document,
        chunk_id=start,
        path="a.md",
        title="Guide",
        heading=heading,
        page=None,
        text=text,
        char_start=start,
        char_end=end,
        line_start=line,
        line_end=line + text.count("\n"),
        score=score,
    )


FIRST = passage(0, DOCUMENT.index("First part.") + 11)
SECOND = passage(DOCUMENT.index("Second"), DOCUMENT.index("Second") + 12)
THIRD = passage(DOCUMENT.index("Third"), len(DOCUMENT) - 1)


def test_neighbours_become_one_at_the_place_of_the_better() -> None:
    """Whichever of them comes first in the document; the chunk is the better one's, the score the higher."""
    other = replace(FIRST, document_id=2)
    together = merged([SECOND, other, replace(FIRST, score=0.9)])

    assert [(one.n, one.chunk_id, one.score) for one in together] == [(1, SECOND.chunk_id, 0.9), (2, 0, 0.5)]
    assert together[0].text == DOCUMENT[0 : SECOND.char_end]
    assert (together[0].line_start, together[0].line_end) == (1, 5)


def test_what_is_not_known_to_follow_stays_apart() -> None:
    """Blanks between them can't be told from the passages; another document, the same stretch, or a gap neither."""
    assert len(merged([SECOND, THIRD])) == 2
    assert len(merged([FIRST, replace(SECOND, document_id=2)])) == 2
    assert len(merged([FIRST, THIRD])) == 2
    assert len(merged([FIRST, FIRST])) == 2


def test_an_overlap_is_said_once() -> None:
    """As between the pieces of one long paragraph."""
    start = THIRD.char_start
    (together,) = merged([passage(start, start + 11), passage(start + 6, len(DOCUMENT) - 1)])

    assert together.text == THIRD.text


def test_three_that_follow_each_other_become_one() -> None:
    """The middle one joins what was apart."""
    (together,) = merged([passage(0, 7), passage(22, 34), passage(9, 20)])

    assert together.text == DOCUMENT[0:34]


def test_the_heading_is_what_both_stand_under() -> None:
    """Their own headings stand in the text."""
    (together,) = merged([replace(FIRST, heading="Guide › One"), replace(SECOND, heading="Guide › Two › Deep")])

    assert together.heading == "Guide"


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=6))
def test_every_passage_is_an_exact_slice_and_nothing_is_lost(spans: list[tuple[int, int]]) -> None:
    """Whatever overlaps."""
    given_passages = [passage(start, min(len(DOCUMENT), start + size)) for start, size in spans]
    together = merged(given_passages)

    assert [one.n for one in together] == list(range(1, len(together) + 1))
    assert all(one.text == DOCUMENT[one.char_start : one.char_end] for one in together)
    covered = {at for one in together for at in range(one.char_start, one.char_end)}
    found = {at for one in given_passages for at in range(one.char_start, one.char_end)}
    assert found <= covered
    assert {DOCUMENT[at] for at in covered - found} <= {"\n"}


def test_merging_makes_room() -> None:
    """A neighbour costs its text only; the best passage is given whatever it costs."""
    sizes: list[str] = []

    def count(block: str) -> int:
        sizes.append(block)
        return len(block)

    _, (one,) = fit([FIRST], 10_000, count)
    whole = len(sizes[-1]) + len(SECOND.text) + 2

    assert one.n == 1
    assert fit([FIRST, SECOND], whole + 1, count)[0] == 2
    assert fit([FIRST, SECOND], whole, count)[0] == 1
    assert [one.text for one in fit([FIRST, SECOND], 1, count)[1]] == [FIRST.text]
    assert fit([], 10, count) == (0, ())
