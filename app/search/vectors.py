"""The resident vector index: which stored vectors lie nearest to a query's.

Owns what of a generation is kept in memory: up to 50,000 vectors a float32 matrix, searched exactly; above that one bit
per dimension, the best few hundred of which are ranked exactly by their rows in the database. Loaded at the first
search; each search first takes in what has been stored since (ids only grow), by whichever process. Vectors are keyed
by the sha256 of their text; which chunks hold it, and who may see them, is the caller's business (`app.search.hybrid`).
A search names its generation and sees the vectors of that one only. Around a switch two generations are resident: for
the searches that began before it, and for those after; the older one goes ten seconds after its last search.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.search.embeddings import FloatVector
from app.search.matrices import BitRows, FloatRows
from app.store import vectors as rows

EXACT_ROWS = 50_000
"""Vectors kept whole (77 MB at 384 dimensions). Beyond that bits serve: 48 bytes a vector."""

RERANKED = 150
"""Candidates by bits that are ranked exactly."""

RESIDENT = 2
"""Generations kept in memory at most."""

LINGER_S = 10.0
"""How long a generation other than the one searched last stays in memory after its last search."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A text near the query: its key and the cosine, -1..1."""

    sha256: str
    cosine: float


class VectorIndex:
    """The vectors of the generation that is searched. Thread-safe: one search after the other, a few milliseconds each.

    Args:
        exact_rows: Up to how many vectors are kept whole.
        reranked: How many candidates by bits are ranked exactly.
        monotonic: Seconds, for letting go of what is not searched any more.
    """

    def __init__(
        self,
        *,
        exact_rows: int = EXACT_ROWS,
        reranked: int = RERANKED,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exact_rows = exact_rows
        self._reranked = reranked
        self._monotonic = monotonic
        self._lock = threading.RLock()
        self._residents: dict[int, _Resident] = {}
        """By generation, the one searched last at the end."""

    def search(
        self,
        session: Session,
        generation: rows.ActiveGeneration,
        query: FloatVector,
        limit: int,
        allowed: Collection[str] | None = None,
    ) -> list[Neighbour]:
        """The nearest `limit` texts, nearest first; only those of `allowed`, if given.

        `query` has unit length and the generation's dimension.
        """
        with self._lock:
            resident = self._resident(session, generation)
            places = resident.places(allowed)
            if not len(resident.keys) or (places is not None and not places.size):
                return []
            if isinstance(resident.rows, FloatRows):
                best, cosines = resident.rows.nearest(query, limit, places)
                shas = [resident.keys.sha(place) for place in best]
                return [Neighbour(sha, cosine) for sha, cosine in zip(shas, cosines, strict=True)]
            best = resident.rows.nearest(query, max(limit, self._reranked), places)
            shas = [resident.keys.sha(place) for place in best]
        return _ranked(rows.read_by_sha(session, generation.id, shas), query)[:limit]

    def vectors(
        self, session: Session, generation: rows.ActiveGeneration, shas: Collection[str]
    ) -> dict[str, FloatVector]:
        """The vectors of those texts that have one."""
        with self._lock:
            resident = self._residents.get(generation.id)
            if resident is not None and isinstance(resident.rows, FloatRows):
                known = {sha: place for sha in shas if (place := resident.keys.place(sha)) is not None}
                return dict(zip(known, resident.rows.matrix[list(known.values())], strict=True)) if known else {}
        return rows.read_by_sha(session, generation.id, shas)

    def discard(self, shas: Iterable[str]) -> None:
        """Forgets vectors that were deleted. Not needed for right results, only for memory."""
        gone = list(shas)
        with self._lock:
            for resident in self._residents.values():
                resident.discard(gone)

    def tidy(self) -> None:
        """Lets go of generations that are not searched any more, all but the last one."""
        with self._lock:
            since = self._monotonic() - LINGER_S
            for number in list(self._residents)[:-1]:
                if self._residents[number].used < since:
                    del self._residents[number]

    @property
    def generations(self) -> list[int]:
        """The generations in memory."""
        with self._lock:
            return list(self._residents)

    def __len__(self) -> int:
        with self._lock:
            return sum(len(resident.keys) for resident in self._residents.values())

    def _resident(self, session: Session, generation: rows.ActiveGeneration) -> "_Resident":
        resident = self._residents.pop(generation.id, None) or _Resident(generation, self._exact_rows)
        while len(self._residents) >= RESIDENT:
            del self._residents[next(iter(self._residents))]
        self._residents[generation.id] = resident
        resident.used = self._monotonic()
        self.tidy()
        resident.take_in(session)
        return resident


class _Resident:
    """What is in memory of one generation."""

    def __init__(self, generation: rows.ActiveGeneration, exact_rows: int) -> None:
        self.used = 0.0
        self.keys = _Keys()
        self.rows: FloatRows | BitRows = FloatRows(generation.dim)
        self._id = generation.id
        self._exact_rows = exact_rows
        self._last_id = 0

    def take_in(self, session: Session) -> None:
        """What was stored since."""
        newest = rows.last_id(session)
        if newest <= self._last_id:
            return
        for batch in rows.read_after(session, self._id, self._last_id):
            self.rows.reserve(len(self.keys) + len(batch.shas))
            self.rows.put([self.keys.add(sha) for sha in batch.shas], batch.matrix)
            if isinstance(self.rows, FloatRows) and len(self.keys) > self._exact_rows:
                self.rows = BitRows.of(self.rows, len(self.keys))
        self._last_id = newest

    def discard(self, shas: Iterable[str]) -> None:
        """Gives their places up."""
        for sha in shas:
            place = self.keys.remove(sha)
            if place is not None:
                self.rows.move(len(self.keys), place)

    def places(self, allowed: Collection[str] | None) -> NDArray[np.intp] | None:
        """The places of those keys that are here; None for all."""
        if allowed is None:
            return None
        return np.array([place for sha in allowed if (place := self.keys.place(sha)) is not None], dtype=np.intp)


class _Keys:
    """Places of keys, 0..n-1 without gaps; a removed key's place is taken by the last one."""

    def __init__(self) -> None:
        self._place: dict[bytes, int] = {}
        self._key: list[bytes] = []

    def __len__(self) -> int:
        return len(self._key)

    def sha(self, place: int) -> str:
        return self._key[place].hex()

    def place(self, sha: str) -> int | None:
        return self._place.get(bytes.fromhex(sha))

    def add(self, sha: str) -> int:
        key = bytes.fromhex(sha)
        place = self._place.setdefault(key, len(self._key))
        if place == len(self._key):
            self._key.append(key)
        return place

    def remove(self, sha: str) -> int | None:
        """The place that became free and now belongs to the last key; that key's vector has to move there."""
        place = self._place.pop(bytes.fromhex(sha), None)
        if place is None:
            return None
        last = self._key.pop()
        if place < len(self._key):
            self._key[place] = last
            self._place[last] = place
        return place


def _ranked(found: dict[str, FloatVector], query: FloatVector) -> list[Neighbour]:
    if not found:
        return []
    cosines = np.stack(list(found.values())) @ query
    nearest = [Neighbour(sha, cosine) for sha, cosine in zip(found, cosines.tolist(), strict=True)]
    return sorted(nearest, key=lambda near: -near.cosine)
