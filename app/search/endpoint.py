"""An embedder behind any `/v1/embeddings` address.

Owns batching, reading the reply in either encoding, and checking that it is one. How a request is sent belongs to
`app.upstream.embeddings`. Callers know this as an `Embedder`.
"""

import base64
import binascii
from typing import Any, cast

import numpy as np
import orjson

from app.search.embeddings import FloatMatrix, FloatVector, unit
from app.search.errors import EmbedError
from app.upstream.client import Endpoint
from app.upstream.embeddings import VectorRequests
from app.upstream.failures import UpstreamError

BATCH = 32
"""Texts in one request."""

QUERY_TIMEOUT_S = 10.0
"""What a question waits at most; then words alone serve."""


class EndpointEmbedder:
    """Asks the server for vectors and makes them unit length. Thread-safe.

    Args:
        endpoint: Where and which model, which is also the generation's name; `first_token_s` is how long one batch of
            passages may take.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._requests = VectorRequests(endpoint)
        self._dim = 0

    @property
    def model(self) -> str:
        """The model's name."""
        return self._endpoint.model or "-"

    @property
    def dim(self) -> int:
        """The length of its vectors as last seen, 0 before the first reply."""
        return self._dim

    def embed_query(self, text: str) -> FloatVector:
        """One vector, shape (dim,).

        Raises:
            EmbedError: when the server does not answer in 10 s, refuses, or answers with something else.
        """
        return self._embed([text], QUERY_TIMEOUT_S)[0]

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """One row per text, shape (len(texts), dim).

        Raises:
            EmbedError: as above, per batch.
        """
        parts = [
            self._embed(texts[start : start + BATCH], self._endpoint.first_token_s)
            for start in range(0, len(texts), BATCH)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbedError("embed_rejected", retryable=False)
        return np.concatenate(parts) if parts else np.empty((0, self._dim), dtype=np.float32)

    def close(self) -> None:
        """Closes the connections. Safe to call twice; the embedder may be used again."""
        self._requests.close()

    def _embed(self, texts: list[str], timeout_s: float) -> FloatMatrix:
        sent = [text.encode("utf-8", "replace").decode() for text in texts]
        try:
            body = self._requests.send(sent, timeout_s)
        except UpstreamError as error:
            refused = error.failure.code in ("llm_rejected", "context_overflow")
            code = "embed_rejected" if refused else "embed_unavailable"
            raise EmbedError(code, retryable=error.failure.retryable) from error
        matrix = _read(body, len(texts))
        self._dim = matrix.shape[1]
        return matrix


def _read(body: bytes, count: int) -> FloatMatrix:
    """The vectors of a reply, unit length, in the order they were asked for.

    Raises:
        EmbedError: when the reply holds anything but `count` finite vectors of one length.
    """
    try:
        parsed: Any = orjson.loads(body)
        entries = sorted(cast("list[dict[str, Any]]", parsed["data"]), key=lambda entry: int(entry.get("index", 0)))
        vectors = [_vector(entry["embedding"]) for entry in entries]
        matrix = np.stack(vectors)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise EmbedError("embed_rejected", retryable=False) from error
    if matrix.ndim != 2 or matrix.shape[0] != count or not matrix.shape[1] or not np.isfinite(matrix).all():
        raise EmbedError("embed_rejected", retryable=False)
    return np.stack([unit(vector) for vector in matrix])


def _vector(value: "list[float] | str") -> FloatVector:
    """Numbers, or base64 of little-endian float32."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
    return np.asarray(value, dtype=np.float32)
