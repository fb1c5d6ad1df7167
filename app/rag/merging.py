"""Neighbours among the passages of one document become one passage. Pure.

Owns when two stretches are known to follow each other without looking at the document: they overlap, or nothing but
line ends lies between them. Called by `app.rag.context`.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.rag.pieces import Passage

_BETWEEN = " › "
_GAP = 3
"""Line ends between two blocks at most; more may be what was left out of the text."""


def merged(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages, those that follow each other in a document as one, at the place and with the chunk and score of the
    best; numbered from 1. Each text stays an exact slice of the document."""
    found: list[Passage] = []
    for passage in passages:
        at, joined = len(found), passage
        while (near := next((n for n, one in enumerate(found) if _join(one, joined) is not None), None)) is not None:
            best = found.pop(near)
            joined, at = _join(best, joined) or joined, min(at, near)
        found.insert(at, joined)
    return tuple(replace(passage, n=n) for n, passage in enumerate(found, 1))


def _join(best: Passage, other: Passage) -> Passage | None:
    """Both as one, None where they don't follow each other."""
    first, last = (best, other) if best.char_start <= other.char_start else (other, best)
    if best.document_id != other.document_id or not first.char_start < last.char_start <= first.char_end + _GAP:
        return None
    gap = last.char_start - first.char_end
    if last.char_end <= first.char_end or (gap > 0 and gap != last.line_start - first.line_end):
        return None
    return replace(
        best,
        heading=_common(first.heading, last.heading),
        page=first.page,
        text=first.text + "\n" * gap + last.text[max(0, -gap) :],
        char_start=first.char_start,
        char_end=last.char_end,
        line_start=first.line_start,
        line_end=last.line_end,
        score=max(best.score, other.score),
    )


def _common(one: str, other: str) -> str:
    """The headings that both stand under."""
    same: list[str] = []
    for a, b in zip(one.split(_BETWEEN), other.split(_BETWEEN), strict=False):
        if a != b:
            break
        same.append(a)
    return _BETWEEN.join(same)
