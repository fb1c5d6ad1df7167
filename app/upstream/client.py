"""The configured model server as a value (`Endpoint`) and the clients that talk to it.

Owns how Docent connects: no hidden retries, no redirects, no proxies from the environment. `openai` takes about a
second to import, so it is imported on a worker thread by the first turn that needs it. Does not know what a reply
means (`app.rag.reply` does) nor what may go wrong with a server (`app.upstream.failures`). Used by `app.upstream`'s
other modules and `app.search.embeddings`; `app.main` makes the pool.
"""

import asyncio
from collections import defaultdict
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2

from app.clock import Clock, SystemClock
from app.settings import Settings
from app.upstream.circuit import Circuit
from app.upstream.transport import AsyncPolicy, SyncPolicy

if TYPE_CHECKING:
    import openai

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of a list or a description that are read."""

TOOLS_REFUSED_S = 3600.0
"""How long a model's refusal of tools is remembered: a server that was upgraded meanwhile is noticed."""


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
        try:
            parts = urlsplit(self.base_url)
            host, port = parts.hostname or self.base_url, parts.port
        except ValueError:
            return self.base_url
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{port}" if port else host


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
        transport=AsyncPolicy(endpoint.api_key),
        timeout=timeout or httpx2.Timeout(None, connect=endpoint.connect_s),
        follow_redirects=False,
        trust_env=False,
    )


async def fetch(
    http: httpx2.AsyncClient, method: str, url: str, *, json: object = None
) -> tuple[httpx2.Response, bytes]:
    """One small request: the answer and at most `BODY_LIMIT` bytes of its body, the rest is not read.

    Raises:
        httpx2.HTTPError: as the client does.
        httpx2.InvalidURL: for an address that is none.
    """
    async with http.stream(method, url, json=json) as response:
        if response.status_code >= 300:
            return response, await response.aread()
        body = bytearray()
        async with aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                body += part
                if len(body) >= BODY_LIMIT:
                    break
        return response, bytes(body[:BODY_LIMIT])


def make_client(endpoint: Endpoint, http: httpx2.AsyncClient) -> "openai.AsyncOpenAI":
    """An asynchronous client without retries. Blocks for about a second the first time: call it on a worker thread."""
    import openai  # noqa: PLC0415 - takes a second; only a turn with a model needs it

    client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="-", max_retries=0, http_client=http)
    _ = client.chat.completions.with_streaming_response  # resources are imported on first use: here, not in the loop
    return client


def make_sync_client(endpoint: Endpoint) -> "openai.OpenAI":
    """A blocking client without retries, for worker threads. To be closed.

    A request may take `first_token_s` from one byte to the next.
    """
    import openai  # noqa: PLC0415 - takes a second; only an embeddings endpoint needs it

    http = httpx2.Client(
        transport=SyncPolicy(endpoint.api_key),
        timeout=httpx2.Timeout(endpoint.first_token_s, connect=endpoint.connect_s),
        follow_redirects=False,
        trust_env=False,
    )
    return openai.OpenAI(base_url=endpoint.base_url, api_key="-", max_retries=0, http_client=http)


def client_error() -> type[Exception]:
    """The root of what the clients raise. Cheap once a client has been made."""
    import openai  # noqa: PLC0415 - as in make_client

    return openai.OpenAIError


@dataclass(slots=True)
class _Server:
    """What is kept per server and key."""

    http: httpx2.AsyncClient | None = None
    client: "openai.AsyncOpenAI | None" = None
    first_model: str | None = None
    plain: bool = False
    circuit: Circuit = field(default_factory=Circuit)


class ClientPool:
    """One client per server and key, made when first asked for, closed at shutdown. Belongs to one event loop.

    `clock` is what the callers measure their time with.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._servers: defaultdict[tuple[str, str | None, float], _Server] = defaultdict(_Server)
        self._toolless: dict[tuple[str, str | None], float] = {}
        self._making = asyncio.Lock()

    async def http(self, endpoint: Endpoint) -> httpx2.AsyncClient:
        """The HTTP client of `endpoint`'s server. Belongs to the pool."""
        server = self._server(endpoint)
        async with self._making:
            if server.http is None:
                server.http = await anyio.to_thread.run_sync(make_http, endpoint)
        return server.http

    async def client(self, endpoint: Endpoint) -> "openai.AsyncOpenAI":
        """The openai client of `endpoint`'s server. Belongs to the pool."""
        http, server = await self.http(endpoint), self._server(endpoint)
        async with self._making:
            if server.client is None:
                server.client = await anyio.to_thread.run_sync(make_client, endpoint, http)
        return server.client

    def known_model(self, endpoint: Endpoint) -> str | None:
        """The endpoint's model, or the server's first one once it has been looked up."""
        return endpoint.model or self._server(endpoint).first_model

    def remember_model(self, endpoint: Endpoint, model: str | None) -> None:
        """Keeps the server's first model for the next turn; None forgets it, because the server no longer has it."""
        self._server(endpoint).first_model = model

    def is_plain(self, endpoint: Endpoint) -> bool:
        """Whether the server is known to reject `stream_options`."""
        return self._server(endpoint).plain

    def mark_plain(self, endpoint: Endpoint) -> None:
        """Remembers that the server rejects `stream_options`."""
        self._server(endpoint).plain = True

    def circuit(self, endpoint: Endpoint) -> Circuit:
        """The circuit of `endpoint`'s server, by this pool's clock."""
        return self._server(endpoint).circuit

    def found(self, endpoint: Endpoint) -> bool:
        """The server answered a request that went past the circuit, with whichever key. Says whether that ended a
        pause."""
        ended = [server.circuit.answered() for key, server in self._servers.items() if key[0] == endpoint.base_url]
        return any(ended)

    def refuses_tools(self, endpoint: Endpoint) -> bool:
        """Whether the endpoint's model refused a request with tools within the last `TOOLS_REFUSED_S`."""
        until = self._toolless.get((endpoint.base_url, self.known_model(endpoint)))
        return until is not None and self.clock.monotonic() < until

    def mark_toolless(self, endpoint: Endpoint) -> None:
        """Remembers that the endpoint's model refuses tools."""
        until = self.clock.monotonic() + TOOLS_REFUSED_S
        self._toolless[(endpoint.base_url, self.known_model(endpoint))] = until

    async def aclose(self) -> None:
        """Closes every client. Safe to call twice; the pool may be used again."""
        servers = list(self._servers.values())
        self._servers.clear()
        for server in servers:
            if server.http is not None:
                await server.http.aclose()

    def _server(self, endpoint: Endpoint) -> _Server:
        return self._servers[(endpoint.base_url, endpoint.api_key, endpoint.connect_s)]
