"""How well passages fit the spans of a text that answer a question. Pure.

The measures of the public chunking evaluation, which counts characters: recall, precision, IoU of the passages that
were found, and omega, the IoU of finding exactly those passages that hold a part of the answer. As there, what two
found passages share counts twice as given, and passages of other texts count in full. Used by
`tests.bench.chunking_evaluation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Begin and end in characters, end exclusive."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the text it is about, and the spans of it that answer it."""

    text: str
    corpus: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text, and the text it is found by."""

    corpus: str
    span: Span
    text: str


def overlap(question: Question, found: Sequence[Passage]) -> tuple[float, float, float]:
    """Recall, precision and IoU, each 0..1; all 0 where nothing was found."""
    shared = _length(_common(question.spans, [one.span for one in found if one.corpus == question.corpus]))
    wanted = _length(question.spans)
    given = sum(one.span[1] - one.span[0] for one in found)
    return shared / wanted, shared / given if given else 0.0, shared / (given + wanted - shared)


def omega(question: Question, passages: Sequence[Passage]) -> float:
    """The most that finding passages whole can reach, 0..1."""
    touching = [
        one.span
        for one in passages
        if one.corpus == question.corpus
        and any(one.span[0] < end and start < one.span[1] for start, end in question.spans)
    ]
    shared = _length(_common(question.spans, touching))
    return shared / (_length(touching) + _length(question.spans) - shared)


def _common(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    pairs = [(max(a, c), min(b, d)) for a, b in spans for c, d in others]
    return [(start, end) for start, end in pairs if start < end]


def _length(spans: Sequence[Span]) -> int:
    """Characters that lie in any of the spans."""
    covered, length = 0, 0
    for start, end in sorted(spans):
        length += max(0, end - max(start, covered))
        covered = max(covered, end)
    return length
