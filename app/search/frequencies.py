"""In how many chunks each word stands: asked of the full-text index, and remembered where asking takes long.

Owns that memory and when it is out of date. Called by `app.search.fulltext.weigh`; a `Searcher` keeps one for its
library.

The index counts a word by going through all chunks that hold it: 0.13 µs for each, 30 ms for a word of every passage of
220,000. Words that common are few, and the share of the chunks they stand in hardly changes. While a library grows fast
all of them are out of date with every second question: then a question renews one, the one that needs it most.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.store.prepared import Prepared

COMMON = 4_000
"""Chunks from which on a word's count is remembered."""

TOLERANCE = 0.02
"""Of the chunks, how many may have come and gone until a count is taken again; an idf moves by no more than this."""

USABLE = 0.2
"""Until when a count may wait for its turn to be taken again, by the same measure."""

KEPT = 20_000
"""Words remembered at most, which is some megabytes; then all are forgotten."""

_NEWEST = Prepared(text("SELECT max(id) FROM chunks_fts_docsize"))
_COUNTS = Prepared(text("SELECT term, doc FROM chunks_fts_terms WHERE term IN (SELECT value FROM json_each(:stems))"))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A count, and the index it was taken of: how many chunks it held, and the newest one's id."""

    chunks: int
    total: int
    newest: int

    def drift(self, total: int, newest: int) -> float:
        """How many chunks have come and gone since, as a share of them; infinite where that can't be told. Ids are
        never used twice."""
        added = newest - self.newest
        removed = added - (total - self.total)
        return (added + removed) / self.total if self.total and added >= 0 and removed >= 0 else math.inf

    def now(self, total: int) -> int:
        """The count, if the word stands in as large a share of what came and went as of the rest."""
        return round(self.chunks * total / self.total)


class Frequencies:
    """The counts of one library's index. Thread-safe."""

    def __init__(self) -> None:
        self._common: dict[str, _Counted] = {}

    def counts(self, session: Session, stems: Sequence[str], total: int) -> dict[str, int]:
        """In how many of the index's `total` chunks each of `stems` stands; those that stand nowhere are left out."""
        newest = int(_NEWEST.rows(session, {})[0][0] or 0)
        remembered = {stem: counted for stem in stems if (counted := self._common.get(stem)) is not None}
        drift = {stem: counted.drift(total, newest) for stem, counted in remembered.items()}
        asked = [stem for stem in stems if drift.get(stem, math.inf) > USABLE]
        outdated = [] if asked else sorted((stem for stem in drift if drift[stem] > TOLERANCE), key=drift.__getitem__)
        asked += outdated[-1:]
        found = {stem: counted.now(total) for stem, counted in remembered.items() if stem not in asked}
        if not asked:
            return found
        for row in _COUNTS.rows(session, {"stems": json.dumps(asked)}):
            found[row.term] = int(row.doc)
            if found[row.term] >= COMMON:
                self._remember(row.term, _Counted(found[row.term], total, newest))
        return found

    def _remember(self, stem: str, counted: _Counted) -> None:
        if len(self._common) >= KEPT:
            self._common.clear()
        self._common[stem] = counted
