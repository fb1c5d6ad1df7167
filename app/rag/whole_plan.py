"""How a whole document is read: its text as numbered passages in order, and the sections they are read in. Pure.

Owns where sections are cut and how many are read. Every passage is an exact slice of the canonical text; together they
hold all of it but white space between them, each character once. What is asked of a section is
`app.rag.whole_prompts`', asking it `app.rag.map_reduce`'s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.rag.pieces import DocRef, Passage

SECTIONS = 40
"""Sections that are read; a document with more is read as far as that, and the answer says so."""

SECTION_TOKENS = 6_000
"""What a section holds where the window leaves the choice: more is noted less well, less takes more requests."""

_LEAST_TOKENS = 120
"""A passage is at least this long where its neighbour stands under the same heading: labels cost about 40 tokens."""

_MOST_NUMBERS = 400
"""Passages that are numbered at most, nearly: a marker has three digits."""

_BETWEEN = " › "

Size = Callable[[str], int]
"""Tokens of a text, estimated."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk begins, and what is known of it."""

    chunk_id: int
    heading: str
    page: int | None
    char_start: int


@dataclass(frozen=True, slots=True)
class WholeText:
    """A document's canonical text, and the places of its chunks in order."""

    document: DocRef
    title: str
    text: str
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of the document that is read at once; `number` counts from 1."""

    number: int
    passages: tuple[Passage, ...]

    @property
    def lines(self) -> tuple[int, int]:
        """Its first and its last line."""
        return self.passages[0].line_start, self.passages[-1].line_end

    @property
    def heading(self) -> str:
        """The heading that its passages share, else the one it begins under."""
        shared = self.passages[0].heading
        for passage in self.passages[1:]:
            shared = _shared(shared, passage.heading)
        return shared or self.passages[0].heading


def passages_of_document(whole: WholeText, size: Size, *, most: int) -> tuple[Passage, ...]:
    """The text as passages, numbered from 1; none is larger than `most` tokens."""
    cut = [part for passage in _slices(whole) for part in _cut(passage, most, size)]
    total = min(sum(size(passage.text) for passage in cut), SECTIONS * most)
    least = max(_LEAST_TOKENS, total // _MOST_NUMBERS)
    joined: list[Passage] = []
    for passage in cut:
        together = _joined(joined[-1], passage, whole.text, least, size) if joined else None
        if together is not None and size(together.text) <= min(most, 4 * least):
            joined[-1] = together
        else:
            joined.append(passage)
    return tuple(replace(passage, n=n) for n, passage in enumerate(joined, 1))


def sections_of(passages: Sequence[Passage], room: int, size: Callable[[Passage], int]) -> tuple[Section, ...]:
    """All of the passages in sections of at most `room` tokens each, cut where a heading of the highest level begins
    among the places in the second half of what fits. A passage larger than the room is a section of its own."""
    sizes = [size(passage) for passage in passages]
    room = min(room, max(SECTION_TOKENS, sum(sizes) // (SECTIONS - 4)))
    found: list[Section] = []
    start = 0
    while start < len(passages):
        end, used = start, 0
        while end < len(passages) and (end == start or used + sizes[end] <= room):
            used += sizes[end]
            end += 1
        if end < len(passages):
            end = _best_cut(passages, sizes, start, end, used)
        found.append(Section(len(found) + 1, tuple(passages[start:end])))
        start = end
    return tuple(found)


def landmarks(passages: Sequence[Passage], most: int) -> tuple[Passage, ...]:
    """At most `most` passages that stand for the document: its beginning, and where parts of the highest levels
    begin."""
    by_weight = sorted(range(1, len(passages)), key=lambda at: (_depth(passages[at - 1], passages[at]), at))
    return tuple(passages[at] for at in sorted([0, *by_weight[: most - 1]]) if at < len(passages))


def _best_cut(passages: Sequence[Passage], sizes: Sequence[int], start: int, end: int, used: int) -> int:
    """Where to end a section that holds `[start:end]` at most."""
    best, left = end, used
    for at in range(end, start, -1):
        if _depth(passages[at - 1], passages[at]) < _depth(passages[best - 1], passages[best]):
            best = at
        left -= sizes[at - 1]
        if left * 2 < used:
            break
    return best


def _depth(before: Passage, after: Passage) -> int:
    """How many headings two neighbours share: the fewer, the better a place to cut; more than any in one section."""
    if before.heading == after.heading:
        return 99
    return len(list(filter(None, _shared(before.heading, after.heading).split(_BETWEEN))))


def _slices(whole: WholeText) -> list[Passage]:
    """A passage for each chunk, up to where the next begins; the first from the text's beginning."""
    places = sorted(whole.places, key=lambda place: place.char_start)
    ends = [*(place.char_start for place in places[1:]), len(whole.text)]
    found: list[Passage] = []
    start, line, counted = 0, 1, 0
    for place, end in zip(places, ends, strict=True):
        part = whole.text[start:end]
        begin = start + len(part) - len(part.lstrip())
        stop = start + len(part.rstrip())
        start = end
        if stop <= begin:
            continue
        line += whole.text.count("\n", counted, begin)
        counted = begin
        found.append(
            Passage(
                n=0,
                document_id=whole.document.document_id,
                chunk_id=place.chunk_id,
                path=whole.document.path,
                title=whole.title,
                heading=place.heading,
                page=place.page,
                text=whole.text[begin:stop],
                char_start=begin,
                char_end=stop,
                line_start=line,
                line_end=line + whole.text.count("\n", begin, stop),
                score=1.0,
            )
        )
    return found


def _cut(passage: Passage, most: int, size: Size) -> list[Passage]:
    """The passage in parts of at most `most` tokens, at line ends where lines are short enough."""
    if size(passage.text) <= most:
        return [passage]
    parts: list[Passage] = []
    text, at = passage.text, 0
    while at < len(text):
        end = min(len(text), at + most)  # a character is one token at most
        while end < len(text) and size(text[at : min(len(text), end + most // 2)]) <= most:
            end = min(len(text), end + most // 2)
        line_end = text.rfind("\n", at + 1, end)
        end = line_end if end < len(text) and line_end > at else end
        if text[at:end].strip():
            parts.append(_part(passage, at, end))
        at = end
    return parts


def _part(passage: Passage, start: int, end: int) -> Passage:
    text = passage.text[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    line = passage.line_start + passage.text.count("\n", 0, start)
    begin = passage.char_start + start
    return replace(
        passage,
        text=text,
        char_start=begin,
        char_end=begin + len(text),
        line_start=line,
        line_end=line + text.count("\n"),
    )


def _joined(one: Passage, other: Passage, text: str, least: int, size: Size) -> Passage | None:
    """Both as one where either is short and they share a heading, or have none."""
    shared = _shared(one.heading, other.heading)
    if min(size(one.text), size(other.text)) >= least or (one.heading and not shared) or (other.heading and not shared):
        return None
    together = text[one.char_start : other.char_end]
    return replace(one, heading=shared, text=together, char_end=other.char_end, line_end=other.line_end)


def _shared(one: str, other: str) -> str:
    same: list[str] = []
    for a, b in zip(one.split(_BETWEEN), other.split(_BETWEEN), strict=False):
        if a != b:
            break
        same.append(a)
    return _BETWEEN.join(same)
