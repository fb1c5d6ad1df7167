"""The resident vector index: which stored vectors lie nearest to a query's.

Owns what of a generation is kept in memory: up to 50,000 vectors a float32 matrix, searched exactly; above that one bit
per dimension, the best few hundred of which are ranked exactly by their rows in the database. Loaded at the first
search; each search first takes in what has been stored since (ids only grow), by whichever process. Vectors are keyed
by the sha256 of their text; which chunks hold it, and who may see them, is the caller's business (`app.search.hybrid`).
"""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.search.embeddings import FloatMatrix, FloatVector
from app.store import vectors as rows

EXACT_ROWS = 50_000
"""Vectors kept whole (77 MB at 384 dimensions). Beyond that bits serve: 48 bytes a vector."""

RERANKED = 150
"""Candidates by bits that are ranked exactly."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A text near the query: its key and the cosine, -1..1."""

    sha256: str
    cosine: float


class VectorIndex:
    """The vectors of one generation at a time. Thread-safe: one search after the other, a few milliseconds each.

    Args:
        exact_rows: Up to how many vectors are kept whole.
        reranked: How many candidates by bits are ranked exactly.
    """

    def __init__(self, *, exact_rows: int = EXACT_ROWS, reranked: int = RERANKED) -> None:
        self._exact_rows = exact_rows
        self._reranked = reranked
        self._lock = threading.RLock()
        self._generation: int | None = None
        self._last_id = 0
        self._keys = _Keys()
        self._rows: _FloatRows | _BitRows = _FloatRows(0)

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
            self._take_in(session, generation)
            places = self._places(allowed)
            if not len(self._keys) or (places is not None and not places.size):
                return []
            if isinstance(self._rows, _FloatRows):
                best, cosines = self._rows.nearest(query, limit, places)
                return [Neighbour(self._keys.sha(place), cosine) for place, cosine in zip(best, cosines, strict=True)]
            best = self._rows.nearest(query, max(limit, self._reranked), places)
            shas = [self._keys.sha(place) for place in best]
        return _ranked(rows.read_by_sha(session, generation.id, shas), query)[:limit]

    def vectors(
        self, session: Session, generation: rows.ActiveGeneration, shas: Collection[str]
    ) -> dict[str, FloatVector]:
        """The vectors of those texts that have one."""
        with self._lock:
            if isinstance(self._rows, _FloatRows) and self._generation == generation.id:
                known = {sha: place for sha in shas if (place := self._keys.place(sha)) is not None}
                return dict(zip(known, self._rows.matrix[list(known.values())], strict=True)) if known else {}
        return rows.read_by_sha(session, generation.id, shas)

    def discard(self, shas: Iterable[str]) -> None:
        """Forgets vectors that were deleted. Not needed for right results, only for memory."""
        with self._lock:
            for sha in shas:
                place = self._keys.remove(sha)
                if place is not None:
                    self._rows.move(len(self._keys), place)

    def __len__(self) -> int:
        return len(self._keys)

    def _take_in(self, session: Session, generation: rows.ActiveGeneration) -> None:
        if self._generation != generation.id:
            self._generation, self._last_id = generation.id, 0
            self._keys, self._rows = _Keys(), _FloatRows(generation.dim)
        newest = rows.last_id(session)
        if newest <= self._last_id:
            return
        for batch in rows.read_after(session, generation.id, self._last_id):
            self._rows.reserve(len(self._keys) + len(batch.shas))
            for sha, vector in zip(batch.shas, batch.matrix, strict=True):
                self._rows.put(self._keys.add(sha), vector)
            if isinstance(self._rows, _FloatRows) and len(self._keys) > self._exact_rows:
                self._rows = _BitRows.of(self._rows, len(self._keys))
        self._last_id = newest

    def _places(self, allowed: Collection[str] | None) -> NDArray[np.intp] | None:
        if allowed is None:
            return None
        return np.array([place for sha in allowed if (place := self._keys.place(sha)) is not None], dtype=np.intp)


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


class _FloatRows:
    """Vectors kept whole."""

    def __init__(self, dim: int) -> None:
        self.matrix = np.empty((0, dim), dtype=np.float32)
        self.count = 0

    def reserve(self, count: int) -> None:
        room, dim = self.matrix.shape
        if count > room:
            grown = np.empty((max(count, room + room // 4), dim), dtype=np.float32)
            grown[:room] = self.matrix
            self.matrix = grown

    def put(self, place: int, vector: FloatVector) -> None:
        self.matrix[place] = vector
        self.count = max(self.count, place + 1)

    def move(self, source: int, target: int) -> None:
        self.matrix[target] = self.matrix[source]
        self.count = source

    def nearest(self, query: FloatVector, limit: int, places: NDArray[np.intp] | None) -> tuple[list[int], list[float]]:
        """Places, nearest first, and their cosines."""
        cosines = self.cosines(query, places)
        best = _top(-cosines, limit)
        return (best if places is None else places[best]).tolist(), cosines[best].tolist()

    def cosines(self, query: FloatVector, places: "NDArray[np.intp] | list[int] | None") -> FloatVector:
        """One per place, None for all. Not by `@`: the linear algebra library sets every core to work on it, and their
        waiting for each other keeps the question's embedding and the streams from running."""
        return np.einsum("ij,j->i", self.matrix[: self.count] if places is None else self.matrix[places], query)


class _BitRows:
    """Signs of vectors, 64 to a word, compared by how many differ. One column a vector: adding up whole rows is five
    times as fast as adding up the six words of each vector."""

    def __init__(self, codes: NDArray[np.uint64]) -> None:
        self.codes = codes
        self.count = codes.shape[1]

    @classmethod
    def of(cls, rows: _FloatRows, count: int) -> "_BitRows":
        """The signs of whole vectors."""
        return cls(np.ascontiguousarray(_signs(rows.matrix[:count]).T))

    def reserve(self, count: int) -> None:
        room = self.codes.shape[1]
        if count > room:
            grown = np.empty((len(self.codes), max(count, room + room // 4)), dtype=np.uint64)
            grown[:, :room] = self.codes
            self.codes = grown

    def put(self, place: int, vector: FloatVector) -> None:
        self.codes[:, place] = _signs(vector[np.newaxis])[0]
        self.count = max(self.count, place + 1)

    def move(self, source: int, target: int) -> None:
        self.codes[:, target] = self.codes[:, source]
        self.count = source

    def nearest(self, query: FloatVector, limit: int, places: NDArray[np.intp] | None) -> list[int]:
        """Places, nearest first."""
        code = _signs(query[np.newaxis])[0][:, np.newaxis]
        codes = self.codes[:, : self.count] if places is None else self.codes[:, places]
        differing = np.bitwise_count(codes ^ code).sum(axis=0, dtype=np.uint16)
        best = _top(differing, limit)
        return (best if places is None else places[best]).tolist()


def _signs(matrix: FloatMatrix) -> NDArray[np.uint64]:
    """One bit per dimension, packed into 64-bit words, the last one filled up with zeros."""
    packed = np.packbits(matrix > 0, axis=1)
    padding = -packed.shape[1] % 8
    return np.pad(packed, ((0, 0), (0, padding))).view(np.uint64)


def _ranked(found: dict[str, FloatVector], query: FloatVector) -> list[Neighbour]:
    if not found:
        return []
    cosines = np.stack(list(found.values())) @ query
    nearest = [Neighbour(sha, cosine) for sha, cosine in zip(found, cosines.tolist(), strict=True)]
    return sorted(nearest, key=lambda near: -near.cosine)


def _top(distances: NDArray[np.float32] | NDArray[np.uint16], limit: int) -> NDArray[np.intp]:
    """Places of the `limit` smallest, smallest first, equal ones in order of place."""
    if limit < distances.size:
        chosen = np.sort(np.argpartition(distances, limit - 1)[:limit])
        return chosen[np.argsort(distances[chosen], kind="stable")]
    return np.argsort(distances, kind="stable")
