"""An answer that no model writes: text whose markers name the passages that stand with it. Pure.

Owns the shape of such an answer and how it streams; `app.rag.catalogue` and `app.rag.outline` make them. It goes the
way of every answer: the same frames, the same check of its markers, the same row.
"""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from anyio.lowlevel import checkpoint

from app.rag.pieces import Passage, StreamPiece

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")


@dataclass(frozen=True, slots=True)
class Told:
    """Markdown, and the passages that its markers name."""

    text: str
    passages: tuple[Passage, ...] = ()


async def told_pieces(told: Told) -> AsyncGenerator[StreamPiece]:
    """The text as content pieces, a line each."""
    for line in told.text.splitlines(keepends=True):
        yield StreamPiece("content", line)
        await checkpoint()


def as_words(name: str) -> str:
    """A title or a file's name as Markdown that shows it, whatever it holds."""
    return _MARKUP.sub(r"\\\1", " ".join(name.split()))
