"""Blocks before they have offsets, and the canonical text written from them. Pure.

For families whose own lines mean nothing (HTML, office files, mail): the text is new and has Markdown's shapes.
`assembled` gives it; the families say what stands in it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.ingest.blocks import Block, BlockKind
from app.ingest.extract.decode import normalise


class Found(NamedTuple):
    """A block without offsets; `level` for headings only, `page` for formats that have pages."""

    kind: BlockKind
    level: int
    text: str
    label: str = ""
    page: int | None = None


def heading(level: int, label: str, page: int | None = None) -> Found:
    """A heading on one line."""
    label = " ".join(label.split())
    return Found("heading", min(6, level), label, label, page)


def assembled(found: Iterable[Found]) -> tuple[str, tuple[Block, ...]]:
    """The canonical text, blocks one blank line apart, and the blocks with their offsets."""
    blocks: list[Block] = []
    at = 0
    for kind, level, text, label, page in _written(found):
        blocks.append(Block(kind, text, level, at, at + len(text), page, label))
        at += len(text) + 2
    return "\n\n".join(block.text for block in blocks), tuple(blocks)


def _written(found: Iterable[Found]) -> Iterator[Found]:
    for kind, level, text, label, page in found:
        clean = normalise(text).strip("\n").rstrip()
        if not clean:
            continue
        if kind == "heading":
            yield Found(kind, level, f"{'#' * level} {clean}", clean, page)
        elif kind == "code":
            fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
            yield Found(kind, 0, f"{fence}\n{clean}\n{fence}", "", page)
        else:
            yield Found(kind, level, clean, label, page)
