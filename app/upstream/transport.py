"""The transports that every request to a model server goes through.

Own which headers leave this machine (no platform facts, nothing of OPENAI_* variables, only the endpoint's own key) and
that an error body is read only up to a limit. Used by `app.upstream.client` only.
"""

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

import httpx2

ERROR_BODY_LIMIT = 64 * 1024
"""Bytes of an error body that are read: enough to recognise what a server says."""

HOP_HEADER = "X-Docent-Hop"
"""Marks a request that went through a Docent's `/v1`, so that one whose endpoint is itself notices."""

through_v1: ContextVar[bool] = ContextVar("through_v1", default=False)
"""Whether what is asked of a model server is asked for a client of `/v1`; then it carries `HOP_HEADER`."""

_HEADERS = frozenset({"host", "accept", "connection", "content-length", "content-type", "transfer-encoding"})
_CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=5.0)


def prepared(request: httpx2.Request, api_key: str | None) -> httpx2.Request:
    """The request as it is sent: the client adds the platform to its headers, and whatever OPENAI_* variables say.

    A copy, because the client finds its own marks in the headers of the request it made.
    """
    kept = [(name, value) for name, value in request.headers.multi_items() if name.lower() in _HEADERS]
    headers = [*kept, ("User-Agent", "docent"), ("Accept-Encoding", "identity")]
    if through_v1.get():
        headers.append((HOP_HEADER, "1"))
    if api_key:
        if not (api_key.isascii() and api_key.isprintable()):
            raise httpx2.LocalProtocolError("the API key holds a character no header can carry", request=request)
        headers.append(("Authorization", f"Bearer {api_key}"))
    return httpx2.Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


class AsyncPolicy(httpx2.AsyncHTTPTransport):
    """The transport that every request to a model server goes through."""

    def __init__(self, api_key: str | None) -> None:
        super().__init__(trust_env=False, limits=_CONNECTIONS)
        self._api_key = api_key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request."""
        response = await super().handle_async_request(prepared(request, self._api_key))
        if response.status_code >= 300 and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _AsyncHead(response.stream)
        return response


class SyncPolicy(httpx2.HTTPTransport):
    """The same for the blocking client."""

    def __init__(self, api_key: str | None) -> None:
        super().__init__(trust_env=False, limits=_CONNECTIONS)
        self._api_key = api_key

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request."""
        response = super().handle_request(prepared(request, self._api_key))
        if response.status_code >= 300 and isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _SyncHead(response.stream)
        return response


class _AsyncHead(httpx2.AsyncByteStream):
    """The first `ERROR_BODY_LIMIT` bytes of a body."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ERROR_BODY_LIMIT
        async for part in self._stream:
            yield part[:left]
            left -= len(part)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


class _SyncHead(httpx2.SyncByteStream):
    """The same for the blocking client."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        left = ERROR_BODY_LIMIT
        for part in self._stream:
            yield part[:left]
            left -= len(part)
            if left <= 0:
                return

    def close(self) -> None:
        self._stream.close()
