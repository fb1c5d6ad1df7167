"""Blocks of a text that keeps its lines. Pure.

The Markdown, reStructuredText and plain text families name blocks by line numbers; this turns lines into the canonical
text and line numbers into offsets. Owns no syntax.
"""

from collections.abc import Sequence
from itertools import accumulate

from app.ingest.blocks import Block, BlockKind


class LineBlocks:
    """Collects blocks over a fixed number of lines; lines may be rewritten until `build`."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._spans: list[tuple[BlockKind, int, int, int, str]] = []

    def add(self, kind: BlockKind, first: int, end: int, *, level: int = 0, label: str = "") -> None:
        """Records lines `first` up to, not including, `end` as one block."""
        self._spans.append((kind, first, end, level, label))

    def blank(self, first: int, end: int) -> None:
        """Empties lines that are no content, so that line numbers stay those of the file."""
        self.lines[first:end] = [""] * (min(end, len(self.lines)) - first)

    def build(self) -> tuple[str, tuple[Block, ...]]:
        """The canonical text and its blocks; blocks of nothing but white space are left out."""
        lines = [line.rstrip() for line in self.lines]
        text = "\n".join(lines)
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        blocks: list[Block] = []
        for kind, first, end, level, label in self._spans:
            while first < end and not lines[first]:
                first += 1
            while end > first and not lines[end - 1]:
                end -= 1
            if first < end:
                start, stop = starts[first], starts[end] - 1
                blocks.append(Block(kind, text[start:stop], level, start, stop, None, label))
        return text, tuple(blocks)
