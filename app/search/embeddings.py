"""What an embedder is.

Owns the protocol that ingest (passages) and search (queries) share; `builtin.py` and `endpoint.py` implement it.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatVector = NDArray[np.float32]
FloatMatrix = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into vectors of unit length. Blocking: async callers use a thread. Safe to call from several threads.

    `model` names the generation the vectors belong to; `dim` is their length, 0 as long as an endpoint has not told.
    """

    @property
    def model(self) -> str:
        """The name under which vectors of this embedder are kept."""
        ...

    @property
    def dim(self) -> int:
        """The length of its vectors, 0 while unknown."""
        ...

    def embed_query(self, text: str) -> FloatVector:
        """One vector, shape (dim,).

        Raises:
            EmbedError: when the embedder cannot be reached or answers nonsense.
        """
        ...

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """One row per text, shape (len(texts), dim).

        Raises:
            EmbedError: as above.
        """
        ...

    def close(self) -> None:
        """Lets go of connections or of the model. Safe to call twice; it may be used again after."""
        ...


def unit(vector: FloatVector) -> FloatVector:
    """`vector` stretched or shrunk to length 1; a vector of zeros stays what it is."""
    return vector / np.float32(max(float(np.linalg.norm(vector)), 1e-12))


def floor_of(embedder: Embedder) -> float | None:
    """The cosine that counts as 0 with `embedder`: its `floor` where it names one, else None: it has to be measured.

    What a built-in embedder names is what `app.search.floor` finds for it.
    """
    floor: float | None = getattr(embedder, "floor", None)
    return floor
