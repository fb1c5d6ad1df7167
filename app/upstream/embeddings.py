"""Requests for vectors, and the bodies of their replies.

Owns the client (made at the first request, which imports `openai`) and turning every exception into an `UpstreamError`.
Not what a body means: `app.search.endpoint` reads it, and is the only caller.
"""

import threading
from collections.abc import Sequence
from typing import Any

import httpx2

from app.upstream.client import Endpoint, client_error, make_sync_client
from app.upstream.failures import UpstreamError, failure_of


class VectorRequests:
    """Asks `endpoint` for the vectors of its model. Blocking and thread-safe."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._client: Any = None

    def send(self, texts: Sequence[str], timeout_s: float) -> bytes:
        """The body that the server answers.

        Raises:
            UpstreamError: when there is no answer in time, or one other than 2xx.
        """
        create: Any = self._connected().embeddings.with_raw_response.create
        try:
            reply = create(model=self._endpoint.model, input=list(texts), encoding_format="float", timeout=timeout_s)
        except (httpx2.HTTPError, httpx2.InvalidURL, client_error()) as error:
            raise UpstreamError(failure_of(error, self._endpoint)) from error
        return reply.content

    def close(self) -> None:
        """Closes the connections. Safe to call twice; the next request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = make_sync_client(self._endpoint)
            return self._client
