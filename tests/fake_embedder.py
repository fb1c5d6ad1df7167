"""An embedder without a model: texts that share words point the same way."""

import hashlib
import re

import numpy as np

from app.search.embeddings import FloatMatrix, FloatVector, unit
from app.search.errors import EmbedError


class WordEmbedder:
    """Each word is a fixed direction, a text the sum of its words. Deterministic.

    Args:
        dim: Length of the vectors.
        synonyms: Words that count as another word, so that tests can have likeness without shared words.

    It names its floor, as the built-in ones do; set to None, it has to be measured.
    """

    floor: float | None = 0.0

    def __init__(self, model: str = "fake-words", dim: int = 64, synonyms: dict[str, str] | None = None) -> None:
        self.model = model
        self.dim = dim
        self.is_down = False
        self.queries = 0
        self.is_closed = False
        self._synonyms = synonyms or {}

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question.

        Raises:
            EmbedError: while `is_down`.
        """
        self.queries += 1
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """A row per text.

        Raises:
            EmbedError: while `is_down`.
        """
        if self.is_down:
            raise EmbedError
        matrix = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                matrix[row] += self._direction(self._synonyms.get(word, word))
        return np.stack([unit(vector) for vector in matrix]) if texts else matrix

    def close(self) -> None:
        """Remembers that it was."""
        self.is_closed = True

    def _direction(self, word: str) -> FloatVector:
        seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "little")
        return unit(np.random.default_rng(seed).standard_normal(self.dim).astype(np.float32))
