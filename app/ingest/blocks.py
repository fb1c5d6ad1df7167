"""What extraction yields: one canonical text per document and the blocks that lie in it. Pure.

Every family of `app.ingest.extract` returns an `Extraction`; `app.ingest.chunking` reads it. Owns no parsing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]

HEADING_SEPARATOR = " › "

MAX_LABEL_CHARS = 160
"""Longest part of a heading path, and longest title: both are embedded with every passage under them."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the canonical text: `text == extraction.text[char_start:char_end]`.

    `level` is 1..6 for headings and 0 for everything else; `page` is 1-based, None for formats without pages.
    A heading's `text` is its source (`## Set up`), its `label` what a reader calls it (`Set up`).
    """

    kind: BlockKind
    text: str
    level: int
    char_start: int
    char_end: int
    page: int | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A document as text.

    `text` is what the reader shows: `\\n` line ends, no control characters but tab. Blocks are in order, don't
    overlap, and hold every character of it that is not white space. `title` comes from the content and is empty where
    that names none. `text_yield` counts the characters that are not white space, page by page. `cut` says that the end
    of a long table was left out.
    """

    text: str
    title: str
    mime: str
    encoding: str | None
    pages: int | None
    text_yield: tuple[int, ...] | None
    blocks: tuple[Block, ...]
    cut: bool = False


def heading_labels(blocks: Sequence[Block]) -> list[tuple[str, ...]]:
    """For each block the labels of the headings it stands under, outermost first; a heading's own label included."""
    open_headings: list[tuple[int, str]] = []
    paths: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    for block in blocks:
        if block.kind == "heading":
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
            open_headings.append((block.level, shortened(block.label or block.text)))
            path = tuple(label for _, label in open_headings if label)
        paths.append(path)
    return paths


def shortened(label: str) -> str:
    """A title or heading as long as one may be, cut at a space and marked where it was cut."""
    if len(label) <= MAX_LABEL_CHARS:
        return label
    head = label[: MAX_LABEL_CHARS - 1]
    return (head.rpartition(" ")[0] or head) + "…"


def heading_path(labels: Sequence[str]) -> str:
    """Labels as one line: "Install › Docker"."""
    return HEADING_SEPARATOR.join(labels)
