"""The configured model server as a value (`Endpoint`) and the clients that talk to it.

Owns how Docent connects: no hidden retries, no redirects, no proxies or keys from the environment, no more headers
than needed, a limit on error bodies. `openai` takes about a second to import, so it is imported on a worker thread by
the first turn that needs it. Does not know what a reply means (`app.rag.llm` does) nor what may go wrong with a
server (`app.upstream.failures`). Used by `app.rag.llm`, `app.search.embeddings`, `app.upstream.probe` and `discovery`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2

from app.clock import Clock, SystemClock
from app.settings import Settings

if TYPE_CHECKING:
    import openai

ERROR_BODY_LIMIT = 64 * 1024
"""Bytes of an error body that are read: enough to recognise what a server says."""

_HEADERS = frozenset({"host", "accept", "connection", "content-length", "content-type", "transfer-encoding"})
_CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=5.0)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server and how to ask it. All times in seconds.

    `model` None means: the first one the server lists. `first_token_s` and `idle_s` count from the request and from the
    last token, `total_s` from the start of the turn; `loading_notice_s` is when a reader is told that the model loads.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    connect_s: float = 5.0
    first_token_s: float = 300.0
    idle_s: float = 60.0
    total_s: float = 1800.0
    retry_max: int = 2
    loading_notice_s: float = 5.0

    @property
    def server(self) -> str:
        """`host:port` as a person would say it; without the port where the address has none."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or self.base_url
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{parts.port}" if parts.port else host


def endpoint_from(settings: Settings) -> Endpoint | None:
    """The model server of `settings`, or None where none is set."""
    if not settings.llm_base_url:
        return None
    return Endpoint(
        base_url=settings.llm_base_url.strip().rstrip("/"),
        api_key=settings.llm_api_key,
        model=settings.llm_model,
        temperature=settings.llm_temperature,
        max_tokens=settings.llm_max_tokens,
        connect_s=settings.llm_connect_s,
        first_token_s=settings.llm_first_token_s,
        idle_s=settings.llm_idle_s,
        total_s=settings.llm_total_s,
        retry_max=settings.llm_retry_max,
    )


def embed_endpoint_from(settings: Settings) -> Endpoint | None:
    """The embeddings server of `settings`, or None where the built-in embedder is to be used."""
    if not settings.embed_base_url:
        return None
    return Endpoint(
        base_url=settings.embed_base_url.strip().rstrip("/"),
        api_key=settings.embed_api_key,
        model=settings.embed_model,
        connect_s=settings.llm_connect_s,
        first_token_s=settings.llm_first_token_s,
        retry_max=settings.llm_retry_max,
    )


def make_http(endpoint: Endpoint, timeout: httpx2.Timeout | None = None) -> httpx2.AsyncClient:
    """An HTTP client bound to `endpoint`: it sends the endpoint's key and follows no redirect. To be closed.

    Without `timeout` only connecting is limited; the caller has clocks of its own.
    """
    return httpx2.AsyncClient(
        transport=_AsyncPolicy(endpoint.api_key),
        timeout=timeout or httpx2.Timeout(None, connect=endpoint.connect_s),
        follow_redirects=False,
        trust_env=False,
    )


def make_client(endpoint: Endpoint) -> "openai.AsyncOpenAI":
    """An asynchronous client without retries. Blocks for about a second the first time: call it on a worker thread."""
    import openai  # noqa: PLC0415 - takes a second; only a turn with a model needs it

    client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="-", max_retries=0, http_client=make_http(endpoint))
    _ = client.chat.completions.with_streaming_response  # resources are imported on first use: here, not in the loop
    return client


def make_sync_client(endpoint: Endpoint) -> "openai.OpenAI":
    """A blocking client without retries, for worker threads. To be closed.

    A request may take `first_token_s` from one byte to the next.
    """
    import openai  # noqa: PLC0415 - takes a second; only an embeddings endpoint needs it

    http = httpx2.Client(
        transport=_SyncPolicy(endpoint.api_key),
        timeout=httpx2.Timeout(endpoint.first_token_s, connect=endpoint.connect_s),
        follow_redirects=False,
        trust_env=False,
    )
    return openai.OpenAI(base_url=endpoint.base_url, api_key="-", max_retries=0, http_client=http)


class ClientPool:
    """One client per server and key, made when first asked for, closed at shutdown. Belongs to one event loop.

    `clock` is what the callers measure their time with.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._clients: dict[tuple[str, str | None, float], openai.AsyncOpenAI] = {}
        self._models: dict[tuple[str, str | None, float], str] = {}
        self._making = asyncio.Lock()

    async def client(self, endpoint: Endpoint) -> "openai.AsyncOpenAI":
        """The client of `endpoint`'s server."""
        key = _key(endpoint)
        async with self._making:
            if key not in self._clients:
                self._clients[key] = await anyio.to_thread.run_sync(make_client, endpoint)
        return self._clients[key]

    def known_model(self, endpoint: Endpoint) -> str | None:
        """The endpoint's model, or the server's first one once it has been looked up."""
        return endpoint.model or self._models.get(_key(endpoint))

    def remember_model(self, endpoint: Endpoint, model: str) -> None:
        """Keeps the server's first model for the next turn."""
        self._models[_key(endpoint)] = model

    def forget_model(self, endpoint: Endpoint) -> None:
        """Drops the remembered model, because the server no longer has it."""
        self._models.pop(_key(endpoint), None)

    async def aclose(self) -> None:
        """Closes every client. Safe to call twice; the pool may be used again."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()


def _key(endpoint: Endpoint) -> tuple[str, str | None, float]:
    return (endpoint.base_url, endpoint.api_key, endpoint.connect_s)


def _prepare(request: httpx2.Request, api_key: str | None) -> None:
    """Keeps the headers a model server needs: the client adds the platform, and whatever OPENAI_* variables say."""
    kept = [(name, value) for name, value in request.headers.multi_items() if name.lower() in _HEADERS]
    request.headers = httpx2.Headers([*kept, ("User-Agent", "docent"), ("Accept-Encoding", "identity")])
    if not api_key:
        return
    if not (api_key.isascii() and api_key.isprintable()):
        raise httpx2.LocalProtocolError("the API key holds a character that no header can carry", request=request)
    request.headers["Authorization"] = f"Bearer {api_key}"


class _AsyncPolicy(httpx2.AsyncHTTPTransport):
    """The transport that every request to a model server goes through."""

    def __init__(self, api_key: str | None) -> None:
        super().__init__(trust_env=False, limits=_CONNECTIONS)
        self._api_key = api_key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _prepare(request, self._api_key)
        response = await super().handle_async_request(request)
        if response.status_code >= 300 and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _AsyncHead(response.stream)
        return response


class _SyncPolicy(httpx2.HTTPTransport):
    """The same for the blocking client."""

    def __init__(self, api_key: str | None) -> None:
        super().__init__(trust_env=False, limits=_CONNECTIONS)
        self._api_key = api_key

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        _prepare(request, self._api_key)
        response = super().handle_request(request)
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
