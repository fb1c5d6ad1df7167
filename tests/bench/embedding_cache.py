"""An embedder that remembers passages on disk, so that a benchmark pays for a corpus once.

The file lies under `data/bench` (git-ignored). Keys hold the model's name: another model finds nothing here.
"""

import hashlib
import sqlite3
from pathlib import Path

import numpy as np

from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import FloatMatrix, FloatVector

BENCH_DIR = Path(__file__).resolve().parents[2] / "data" / "bench"


class CachedEmbedder:
    """The built-in embedder with a memory for passages. Queries are always embedded anew: they are what is timed."""

    def __init__(self, folder: Path = BENCH_DIR) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._inner = BuiltinEmbedder()
        self._path = folder / "passages.db"
        self.model = self._inner.model
        self.dim = self._inner.dim

    def embed_query(self, text: str) -> FloatVector:
        """Never cached."""
        return self._inner.embed_query(text)

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """From the file where it is known, else embedded and kept."""
        matrix = np.empty((len(texts), self.dim), dtype=np.float32)
        with sqlite3.connect(self._path, timeout=60) as file:
            file.execute("CREATE TABLE IF NOT EXISTS passages (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        for start in range(0, len(texts), 64):
            self._fill(texts[start : start + 64], matrix[start : start + 64])
        return matrix

    def close(self) -> None:
        """Frees the model."""
        self._inner.close()

    def _fill(self, texts: list[str], matrix: FloatMatrix) -> None:
        file = sqlite3.connect(self._path, timeout=60)
        try:
            for row, text in enumerate(texts):
                key = hashlib.sha256(f"{self.model}\0{text}".encode()).digest()
                found = file.execute("SELECT vector FROM passages WHERE key = ?", (key,)).fetchone()
                if found is None:
                    vector = self._inner.embed_passages([text])[0]
                    file.execute("INSERT OR IGNORE INTO passages VALUES (?, ?)", (key, vector.tobytes()))
                    file.commit()
                    matrix[row] = vector
                else:
                    matrix[row] = np.frombuffer(found[0], dtype=np.float32)
        finally:
            file.close()
