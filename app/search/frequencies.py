"""In how many chunks each word stands: asked of the full-text index, and remembered where asking takes long.

Owns that memory and when it is out of date. Called by `app.search.fulltext.weigh`; a `Searcher` keeps one for its
library.

The index counts a word by going through all chunks that hold it: 0.13 µs for each, 30 ms for a word of every passage of
220,000. Words that common are few, and their counts hardly change.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.store.prepared import Prepared

COMMON = 4_000
"""Chunks from which on a word's count is remembered."""

TOLERANCE = 0.02
"""Of the chunks, how many may have come and gone until a count is taken again; an idf moves by no more than this."""

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

    def holds(self, total: int, newest: int) -> bool:
        """Whether few enough chunks have come and gone since. Ids are never used twice."""
        added = newest - self.newest
        removed = added - (total - self.total)
        return added >= 0 and removed >= 0 and added + removed <= TOLERANCE * self.total


class Frequencies:
    """The counts of one library's index. Thread-safe."""

    def __init__(self) -> None:
        self._common: dict[str, _Counted] = {}

    def counts(self, session: Session, stems: Sequence[str], total: int) -> dict[str, int]:
        """In how many of the index's `total` chunks each of `stems` stands; those that stand nowhere are left out."""
        newest = int(_NEWEST.rows(session, {})[0][0] or 0)
        remembered = {stem: counted for stem in stems if (counted := self._common.get(stem)) is not None}
        found = {stem: counted.chunks for stem, counted in remembered.items() if counted.holds(total, newest)}
        asked = [stem for stem in stems if stem not in found]
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
