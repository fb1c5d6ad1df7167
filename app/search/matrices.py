"""Vectors in memory, searched by place: whole, or as one bit per dimension.

Owns the arithmetic of the nearest. Which vector stands at which place, and what is stored, is `app.search.vectors`'.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.search.embeddings import FloatMatrix, FloatVector


class FloatRows:
    """Vectors kept whole."""

    def __init__(self, dim: int) -> None:
        self.matrix = np.empty((0, dim), dtype=np.float32)
        self.count = 0

    def reserve(self, count: int) -> None:
        """Makes room for `count` vectors."""
        room, dim = self.matrix.shape
        if count > room:
            grown = np.empty((max(count, room + room // 4), dim), dtype=np.float32)
            grown[:room] = self.matrix
            self.matrix = grown

    def put(self, places: Sequence[int], vectors: FloatMatrix) -> None:
        """Stores vectors at places there is room for."""
        self.matrix[places] = vectors
        self.count = max(self.count, max(places, default=-1) + 1)

    def move(self, source: int, target: int) -> None:
        """The last vector takes another place; the count shrinks by one."""
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


class BitRows:
    """Signs of vectors, 64 to a word, compared by how many differ. One column a vector: adding up whole rows is five
    times as fast as adding up the six words of each vector."""

    def __init__(self, codes: NDArray[np.uint64]) -> None:
        self.codes = codes
        self.count = codes.shape[1]

    @classmethod
    def of(cls, rows: FloatRows, count: int) -> "BitRows":
        """The signs of whole vectors."""
        return cls(np.ascontiguousarray(_signs(rows.matrix[:count]).T))

    def reserve(self, count: int) -> None:
        """Makes room for `count` vectors."""
        room = self.codes.shape[1]
        if count > room:
            grown = np.empty((len(self.codes), max(count, room + room // 4)), dtype=np.uint64)
            grown[:, :room] = self.codes
            self.codes = grown

    def put(self, places: Sequence[int], vectors: FloatMatrix) -> None:
        """Stores vectors at places there is room for."""
        self.codes[:, places] = _signs(vectors).T
        self.count = max(self.count, max(places, default=-1) + 1)

    def move(self, source: int, target: int) -> None:
        """The last vector takes another place; the count shrinks by one."""
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


def _top(distances: NDArray[np.float32] | NDArray[np.uint16], limit: int) -> NDArray[np.intp]:
    """Places of the `limit` smallest, smallest first, equal ones in order of place."""
    if limit < distances.size:
        chosen = np.sort(np.argpartition(distances, limit - 1)[:limit])
        return chosen[np.argsort(distances[chosen], kind="stable")]
    return np.argsort(distances, kind="stable")
