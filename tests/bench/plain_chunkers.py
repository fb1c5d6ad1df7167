"""The two ways of cutting a text that everybody has, to measure ours against. Pure.

Both know nothing of headings, tables or sizes that are even: windows of so many tokens, and the recursive splitter that
takes the coarsest separator that leaves parts short enough. Tokens are those of `app.ingest.cutting`; without overlap,
which the evaluation counts twice. Used by `tests.bench.chunking_evaluation`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache, partial

from app.ingest.cutting import TOKEN
from tests.bench.span_scores import Span

Cutter = Callable[[str], list[Span]]

SEPARATORS = tuple(re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"(?<=[.!?])\s+", r"\s+"))
"""Between paragraphs, lines, sentences and words."""


class _Tokens:
    """Where the tokens of a text lie."""

    def __init__(self, text: str) -> None:
        found = [match.span() for match in TOKEN.finditer(text)]
        self.starts = [start for start, _ in found]
        self.ends = [end for _, end in found]

    def count(self, start: int, end: int) -> int:
        """How many begin in a span."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)


@lru_cache(maxsize=8)
def _tokens_of(text: str) -> _Tokens:
    return _Tokens(text)


def fixed(size: int) -> Cutter:
    """Windows of `size` tokens."""
    return partial(_windows, size)


def recursive(size: int) -> Cutter:
    """Parts of at most `size` tokens, as many of the finest kind that is needed as fit."""

    def cut(text: str) -> list[Span]:
        return _parted(text, (0, len(text)), _tokens_of(text), size, 0)

    return cut


def total_tokens(text: str, spans: list[Span]) -> int:
    """The sizes of parts of a text, added up."""
    tokens = _tokens_of(text)
    return sum(tokens.count(*span) for span in spans)


def _windows(size: int, text: str) -> list[Span]:
    tokens = _Tokens(text)
    last = len(tokens.starts) - 1
    return [(tokens.starts[at], tokens.ends[min(at + size - 1, last)]) for at in range(0, last + 1, size)]


def _parted(text: str, span: Span, tokens: _Tokens, size: int, level: int) -> list[Span]:
    if level == len(SEPARATORS):
        start, end = span
        return [(start + one, min(end, start + other)) for one, other in _windows(size, text[start:end])]
    parts: list[Span] = []
    is_open = False
    for start, end in _split(text, span, SEPARATORS[level]):
        if tokens.count(start, end) > size:
            parts += _parted(text, (start, end), tokens, size, level + 1)
            is_open = False
        elif is_open and tokens.count(parts[-1][0], end) <= size:
            parts[-1] = (parts[-1][0], end)
        else:
            parts.append((start, end))
            is_open = True
    return parts


def _split(text: str, span: Span, separator: re.Pattern[str]) -> list[Span]:
    """What stands between the separators, empty parts left out."""
    parts: list[Span] = []
    at = span[0]
    for match in separator.finditer(text, *span):
        parts.append((at, match.start()))
        at = match.end()
    parts.append((at, span[1]))
    return [(start, end) for start, end in parts if text[start:end].strip()]
