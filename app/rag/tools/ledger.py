"""The numbers of a turn's passages: those of the prompt, and those that tools show after them. Pure.

A stretch of a document has one number, however often it comes up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.rag.pieces import Passage

UNRANKED = 1.0
"""The score of a passage that was asked for by its place or its very words: no search has ranked it."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A passage with its number; `is_new` when it was not shown before."""

    passage: Passage
    is_new: bool


class Ledger:
    """Numbers passages on from `given`, which the prompt holds, and from `last`, the highest number it ever held."""

    def __init__(self, given: Sequence[Passage], shown: Sequence[Passage] = (), *, last: int = 0) -> None:
        self._given = tuple(given)
        self._shown = list(shown)
        self._last = max((last, *(known.n for known in (*given, *shown))))

    @property
    def shown(self) -> tuple[Passage, ...]:
        """The passages that tools have numbered."""
        return tuple(self._shown)

    def copy(self, given: Sequence[Passage] | None = None) -> "Ledger":
        """One to work on: a call that is given up leaves no numbers behind. `given` is what the prompt holds by now,
        where that may have changed: a repacked one holds fewer passages."""
        return Ledger(self._given if given is None else given, self._shown, last=self._last)

    def number(self, passage: Passage) -> Numbered:
        """The passage with the number of its stretch, a known one's or the next free one, and of a known one the
        score."""
        for known in (*self._given, *self._shown):
            if _place(known) == _place(passage) and known.text == passage.text:
                return Numbered(replace(passage, n=known.n, score=known.score), is_new=False)
        self._last += 1
        numbered = replace(passage, n=self._last)
        self._shown.append(numbered)
        return Numbered(numbered, is_new=True)

    def covering(self, document_id: int, text: str, start: int, end: int | None) -> Passage | None:
        """The passage that a tool has shown of `text` and that holds `[start:end]`, or begins at `start` where `end` is
        None."""
        for known in self._shown:
            if known.document_id != document_id or text[known.char_start : known.char_end] != known.text:
                continue
            begins = known.char_start == start
            if begins if end is None else known.char_start <= start and end <= known.char_end:
                return known
        return None


def _place(passage: Passage) -> tuple[int, int, int]:
    return passage.document_id, passage.char_start, passage.char_end
