"""Blocks to chunks: what is indexed, embedded, cited and shown. Pure.

Called in the extraction child and by tests; `embedded_text` is also what an embedder is given. Owns no parsing and no
storage.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.ingest.blocks import Block, Extraction, heading_labels, heading_path
from app.ingest.cutting import Piece, count_tokens, paragraphs, split

CHUNKER_VERSION = 2
"""Part of a generation: raise it when the same document would be cut differently."""

MIN_TOKENS = 80
TARGET_TOKENS = 300
MAX_TOKENS = 480
"""Sizes in estimated tokens (`cutting.TOKEN`). A section shorter than the least stays short where the next heading is
of the same or a higher level; nothing is longer than the most."""

_MOST_WHOLE = TARGET_TOKENS * 7 // 5
"""A section up to this long is one chunk; above it, it is cut into parts of about the target."""


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A passage before it has an id: `text == extraction.text[char_start:char_end]`.

    `heading` is the heading path joined by " › ", empty where there is none. Lines are 1-based and inclusive, of the
    canonical text; `page` is where the passage begins. `sha256` is of `embedded_text(title, heading, text)`.
    """

    ordinal: int
    heading: str
    text: str
    char_start: int
    char_end: int
    page: int | None
    line_start: int
    line_end: int
    sha256: str


@dataclass(slots=True)
class _Group:
    """Blocks that may share chunks: a section, with the small subsections after it that it took in."""

    level: int
    first: int
    end: int
    tokens: int


def chunk(extraction: Extraction) -> list[ChunkDraft]:
    """Cuts a document: every character that is not white space lies in at least one chunk, in order.

    A chunk never crosses a heading of the same or a higher level than the one it begins under. Tables and code stay
    whole where they fit. Deterministic.
    """
    blocks = extraction.blocks
    sizes = [count_tokens(block.text) for block in blocks]
    labels = heading_labels(blocks)
    counter = _LineCounter(extraction.text)
    drafts: list[ChunkDraft] = []
    for group in _groups(blocks, sizes):
        for pieces in _pack(_units(extraction.text, blocks, sizes, group)):
            start, end = pieces[0].char_start, pieces[-1].char_end
            heading = _heading(blocks, labels, pieces)
            text = extraction.text[start:end]
            line = counter.line_of(start)
            drafts.append(
                ChunkDraft(
                    ordinal=len(drafts),
                    heading=heading,
                    text=text,
                    char_start=start,
                    char_end=end,
                    page=blocks[pieces[0].block].page,
                    line_start=line,
                    line_end=line + text.count("\n"),
                    sha256=embedded_sha256(extraction.title, heading, text),
                )
            )
    return drafts


def embedded_text(title: str, heading: str, text: str) -> str:
    """The text a chunk is embedded as: title, heading path and passage, a line each; the title not said twice."""
    parts = (heading, text) if heading == title or heading.startswith(title + " › ") else (title, heading, text)
    return "\n".join(part for part in parts if part)


def embedded_sha256(title: str, heading: str, text: str) -> str:
    """The key of a chunk's vector: hex sha256 of its embedded text."""
    return hashlib.sha256(embedded_text(title, heading, text).encode()).hexdigest()


class _LineCounter:
    """Line numbers for offsets that mostly grow."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def line_of(self, offset: int) -> int:
        """The 1-based line that holds `offset`."""
        if offset < self._at:
            self._line -= self._text.count("\n", offset, self._at)
        else:
            self._line += self._text.count("\n", self._at, offset)
        self._at = offset
        return self._line


def _groups(blocks: Sequence[Block], sizes: Sequence[int]) -> list[_Group]:
    """Sections, each with the deeper ones behind it while it is too small alone, or while both fit one chunk."""
    groups: list[_Group] = []
    for section in _sections(blocks, sizes):
        last = groups[-1] if groups else None
        fits = last is not None and (last.tokens < MIN_TOKENS or last.tokens + section.tokens <= TARGET_TOKENS)
        if last is not None and fits and section.level > last.level:
            last.end, last.tokens = section.end, last.tokens + section.tokens
            last.level = last.level or section.level
        else:
            groups.append(section)
    return groups


def _sections(blocks: Sequence[Block], sizes: Sequence[int]) -> list[_Group]:
    """A heading and what stands under it up to the next heading; what stands before the first has level 0."""
    sections: list[_Group] = []
    for index, block in enumerate(blocks):
        if block.kind == "heading" or not sections:
            sections.append(_Group(block.level, index, index, 0))
        sections[-1].end = index + 1
        sections[-1].tokens += sizes[index]
    return sections


def _units(text: str, blocks: Sequence[Block], sizes: Sequence[int], group: _Group) -> list[list[Piece]]:
    """What packing may not part: a block, or a piece of a long one, with the headings directly above it."""
    units: list[list[Piece]] = []
    open_unit: list[Piece] = []
    for part in _parts(text, blocks, sizes, group):
        kind, size = blocks[part.block].kind, part.tokens
        room = MAX_TOKENS - _size(open_unit)
        if size <= room:
            pieces = [part]
        elif size <= MAX_TOKENS or room < MIN_TOKENS:
            units.append(open_unit)
            open_unit = []
            pieces = [part] if size <= MAX_TOKENS else list(split(text, part, kind, TARGET_TOKENS))
        else:
            pieces = list(split(text, part, kind, min(TARGET_TOKENS, room * 4 // 5)))
        if kind == "heading" and len(pieces) == 1:
            open_unit.extend(pieces)
            continue
        units.append([*open_unit, pieces[0]])
        units.extend([piece] for piece in pieces[1:])
        open_unit = []
    return [unit for unit in [*units, open_unit] if unit]


def _parts(text: str, blocks: Sequence[Block], sizes: Sequence[int], group: _Group) -> Iterator[Piece]:
    """The blocks of a group; a paragraph too long for one chunk in those that its lines make."""
    for index in range(group.first, group.end):
        block = blocks[index]
        part = Piece(index, block.char_start, block.char_end, sizes[index])
        if block.kind == "paragraph" and part.tokens > MAX_TOKENS:
            yield from paragraphs(text, part)
        else:
            yield part


def _pack(units: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Units into chunks of about equal size; each cut falls where the size is nearest to the share."""
    remaining = sum(_size(unit) for unit in units)
    packs: list[list[Piece]] = []
    pack: list[Piece] = []
    size, share = 0, _share(remaining)
    for unit in units:
        step = _size(unit)
        enough = size >= MIN_TOKENS and size + step / 2 > share and remaining >= min(MIN_TOKENS, share)
        if pack and (enough or size + step > MAX_TOKENS):
            packs.append(pack)
            pack, size, share = [], 0, _share(remaining)
        pack.extend(unit)
        size, remaining = size + step, remaining - step
    return [*packs, pack] if pack else packs


def _share(tokens: int) -> float:
    return tokens if tokens <= _MOST_WHOLE else tokens / round(tokens / TARGET_TOKENS)


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _heading(blocks: Sequence[Block], labels: Sequence[tuple[str, ...]], pieces: Sequence[Piece]) -> str:
    """The path all of a chunk's text stands under; text before the first heading is filed under that."""
    indexes = range(pieces[0].block, pieces[-1].block + 1)
    paths = [labels[index] for index in indexes if blocks[index].kind != "heading" and labels[index]]
    if not paths:
        return heading_path(next((labels[index] for index in indexes if labels[index]), ()))
    common = paths[0]
    for path in paths[1:]:
        if path is common or path == common:
            continue
        same = 0
        while same < min(len(common), len(path)) and common[same] == path[same]:
            same += 1
        common = common[:same]
    return heading_path(common)
