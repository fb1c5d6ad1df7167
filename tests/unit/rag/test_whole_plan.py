"""A document in passages and sections: exact slices, all of the text, cut at headings, near the room."""

from itertools import pairwise

import pytest

from app.rag.pieces import DocRef, Passage
from app.rag.tokens import estimate_tokens
from app.rag.whole_plan import (
    SECTIONS,
    Place,
    WholeText,
    landmarks,
    passages_of_document,
    sections_of,
)

LINE = "The pump in the cellar is looked after by hand, once a week, on a Monday morning.\n"


def document(*parts: tuple[str, str], pages: bool = False) -> WholeText:
    """A document with one chunk for each (heading path, text)."""
    text, places = "", []
    for number, (heading, part) in enumerate(parts, 1):
        places.append(Place(100 + number, heading, number if pages else None, len(text)))
        text += part + "\n\n"
    return WholeText(DocRef(7, "plan.md"), "Plan", text, places)


def chapters(count: int, paragraphs: int = 3, lines: int = 6) -> WholeText:
    """`count` chapters of as many sections each."""
    return document(
        *(
            (f"Plan › Chapter {chapter} › Part {part}", f"## Chapter {chapter}, part {part}\n\n{LINE * lines}")
            for chapter in range(1, count + 1)
            for part in range(1, paragraphs + 1)
        )
    )


def size(passage: Passage) -> int:
    return estimate_tokens(passage.text)


def check(whole: WholeText, passages: tuple[Passage, ...]) -> None:
    """What holds for the passages of any document."""
    assert [passage.n for passage in passages] == list(range(1, len(passages) + 1))
    assert "".join("".join(p.text.split()) for p in passages) == "".join(whole.text.split())
    for passage in passages:
        assert passage.text == whole.text[passage.char_start : passage.char_end] == passage.text.strip()
        assert passage.line_start == whole.text.count("\n", 0, passage.char_start) + 1
        assert passage.line_end == whole.text.count("\n", 0, passage.char_end) + 1
        assert (passage.document_id, passage.path, passage.title) == (7, "plan.md", "Plan")
    assert all(one.char_end <= other.char_start for one, other in pairwise(passages))


@pytest.mark.parametrize("most", [200, 1_000, 30_000])
@pytest.mark.parametrize("lines", [1, 6, 60])
def test_passages_hold_all_of_the_text_once(most: int, lines: int) -> None:
    """Exact slices in order, none over the most, whatever the sizes of chunks."""
    whole = chapters(4, lines=lines)
    passages = passages_of_document(whole, estimate_tokens, most=most)
    check(whole, passages)
    assert all(size(passage) <= most for passage in passages)


def test_chunks_that_overlap_give_each_character_once() -> None:
    """A passage ends where the next chunk begins; the first begins with the text."""
    text = "Intro.\n\nOne two three four five six seven."
    whole = WholeText(DocRef(7, "plan.md"), "Plan", text, [Place(1, "A", None, 8), Place(2, "A", None, 20)])
    passages = passages_of_document(whole, estimate_tokens, most=1_000)
    check(whole, passages)
    assert passages[0].text.startswith("Intro.")


def test_short_neighbours_become_one_passage_under_their_common_heading() -> None:
    """Labels cost; but never across chapters, and the chunk and page are those of the first."""
    whole = document(("A › x", "one"), ("A › y", "two"), ("B › x", "three"), ("", "four"), ("", "five"), pages=True)
    passages = passages_of_document(whole, estimate_tokens, most=1_000)
    check(whole, passages)
    assert [(p.heading, p.text, p.chunk_id, p.page) for p in passages] == [
        ("A", "one\n\ntwo", 101, 1),
        ("B › x", "three", 103, 3),
        ("", "four\n\nfive", 104, 4),
    ]


def test_a_chunk_that_is_larger_than_the_most_is_cut_at_line_ends() -> None:
    """And inside a line where there is no end in reach; blank parts are no passage."""
    whole = document(("A", LINE * 40 + "x" * 4_000 + "\n" + "水" * 900))
    passages = passages_of_document(whole, estimate_tokens, most=300)
    check(whole, passages)
    assert all(size(passage) <= 300 for passage in passages)
    assert passages[0].text.endswith(".")
    assert {passage.chunk_id for passage in passages} == {101}


def test_a_document_without_text_has_no_passages_and_no_sections() -> None:
    """Nothing to read is no error here."""
    assert passages_of_document(document(("A", "  ")), estimate_tokens, most=500) == ()
    assert sections_of((), 1_000, size) == ()
    assert landmarks((), 3) == ()


def test_numbers_stay_below_a_thousand_in_what_is_read() -> None:
    """A marker has three digits: where a long document has more chunks than that, passages hold several."""
    whole = document(*((f"Plan › {n // 50} › {n}", LINE * 4) for n in range(3_000)))
    passages = passages_of_document(whole, estimate_tokens, most=6_000)
    check(whole, passages)
    sections = sections_of(passages, 6_000, size)
    assert sections[min(SECTIONS, len(sections)) - 1].passages[-1].n < 1_000


def test_sections_are_cut_where_a_chapter_begins() -> None:
    """Packed near the room, in order, nothing left out."""
    passages = passages_of_document(chapters(9), estimate_tokens, most=1_000)
    room = sum(map(size, passages)) // 3
    sections = sections_of(passages, room, size)
    assert tuple(passage for section in sections for passage in section.passages) == passages
    assert [section.number for section in sections] == list(range(1, len(sections) + 1))
    assert len(sections) <= 6
    for section in sections:
        assert sum(map(size, section.passages)) <= room
        assert section.passages[0].heading.endswith("Part 1")
        assert section.heading.startswith("Plan")
        assert section.lines == (section.passages[0].line_start, section.passages[-1].line_end)


def test_a_large_window_is_not_filled_for_its_own_sake() -> None:
    """Sections stay at a size that is noted well, unless there would be more of them than are read."""
    passages = passages_of_document(chapters(60, lines=20), estimate_tokens, most=3_000)
    assert sum(map(size, passages)) > 60_000
    sections = sections_of(passages, 200_000, size)
    assert max(sum(map(size, section.passages)) for section in sections) <= 6_000
    many = passages_of_document(chapters(400, lines=25), estimate_tokens, most=3_000)
    assert sum(map(size, many)) > 300_000
    assert len(sections_of(many, 200_000, size)) <= SECTIONS
    assert len(sections_of(many, 3_000, size)) > SECTIONS


def test_a_passage_that_is_larger_than_the_room_is_a_section_of_its_own() -> None:
    """It is read all the same; the server has the last word."""
    passages = passages_of_document(chapters(2, lines=30), estimate_tokens, most=10_000)
    sections = sections_of(passages, 100, size)
    assert [len(section.passages) for section in sections] == [1] * len(passages)


def test_landmarks_are_the_beginning_and_where_chapters_begin() -> None:
    """At most as many as are asked for, in order."""
    passages = passages_of_document(chapters(4), estimate_tokens, most=1_000)
    assert [passage.heading for passage in landmarks(passages, 4)] == [
        f"Plan › Chapter {n} › Part 1" for n in (1, 2, 3, 4)
    ]
    assert landmarks(passages, 100) == passages
    assert landmarks(passages, 1) == passages[:1]
