"""One chat request and the bytes of its reply.

Owns sending the request raw (the typed iterator of the client is slow and takes cut, HTML and error streams for whole
answers), which model is asked when none is set, and turning every exception into an `UpstreamError`. Knows no clocks
but the connect timeout, and not what the bytes mean: `app.rag.reply` does, and is the only caller.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import httpx2

from app.logs import kv
from app.upstream.client import ClientPool, Endpoint, client_error
from app.upstream.failures import Failure, UpstreamError, failure_of, refuses_stream_options
from app.upstream.models import fetch_models, first_chat_model

_log = logging.getLogger(__name__)


class Exchange:
    """One request to `endpoint`. To be closed, whatever happened; closing ends the server's work.

    Args:
        request: The fields of a chat completion but `model` and the streaming ones.
    """

    def __init__(self, pool: ClientPool, endpoint: Endpoint, request: dict[str, Any]) -> None:
        self.content_type = ""
        self._pool = pool
        self._endpoint = endpoint
        self._request = request
        self._stack = AsyncExitStack()
        self._body: AsyncIterator[bytes] | None = None

    async def prepare(self) -> None:
        """Makes the client, which takes a second the first time; no part of the server's time.

        Raises:
            UpstreamError: when the address is none.
        """
        try:
            await self._pool.client(self._endpoint)
        except httpx2.InvalidURL as error:
            raise self._failed(error) from None

    async def open(self) -> None:
        """Sends the request and waits for the reply's head; `content_type` is known then.

        Raises:
            UpstreamError: when there is no answer, or one other than 2xx.
        """
        model = await resolve_model(self._pool, self._endpoint)
        request = {**self._request, "model": model, "stream": True, "stream_options": {"include_usage": True}}
        if self._pool.is_plain(self._endpoint):
            del request["stream_options"]
        try:
            await self._send(request)
        except (httpx2.HTTPError, httpx2.InvalidURL, client_error()) as error:
            if "stream_options" not in request or not refuses_stream_options(error):
                raise self._failed(error) from None
            self._pool.mark_plain(self._endpoint)
            await self._send_plain(request)

    async def read(self) -> bytes:
        """The next bytes as they come; empty at the end.

        Raises:
            UpstreamError: when the connection breaks.
        """
        assert self._body is not None, "read before open"
        try:
            return await anext(self._body)
        except StopAsyncIteration:
            return b""
        except httpx2.HTTPError as error:
            raise self._failed(error) from None

    async def aclose(self) -> None:
        """Closes the connection unless the reply was read to its end. Safe to call twice."""
        await self._stack.aclose()

    async def _send(self, request: dict[str, Any]) -> None:
        client = await self._pool.client(self._endpoint)
        create: Any = client.chat.completions.with_streaming_response.create
        # As `extra_body`: the client walks through typed messages and tools for milliseconds, in the event loop.
        named: dict[str, Any] = {"model": request["model"], "messages": [], "stream": True}
        response = await self._stack.enter_async_context(create(**named, extra_body=request))
        self.content_type = response.headers.get("content-type", "")
        # Closed here and not by the garbage collector: where a reply was left half read, it would come too late.
        self._body = await self._stack.enter_async_context(aclosing(response.http_response.aiter_bytes()))

    async def _send_plain(self, request: dict[str, Any]) -> None:
        """Sends once more without the option that the server does not know; usage will be missing."""
        del request["stream_options"]
        try:
            await self._send(request)
        except (httpx2.HTTPError, client_error()) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> UpstreamError:
        """The error to raise `from None`: the client's own quotes the server, and a traceback would print it."""
        failure = failure_of(error, self._endpoint, with_tools="tools" in self._request)
        _log.debug(kv("endpoint_failed", kind=type(error).__name__, code=failure.code, reason=failure.reason))
        if failure.reason == "model":
            self._pool.remember_model(self._endpoint, None)
        return UpstreamError(failure)


async def resolve_model(pool: ClientPool, endpoint: Endpoint) -> str:
    """The endpoint's model, or the first chat model that the server lists.

    Raises:
        UpstreamError: when the list cannot be had or is empty.
    """
    if known := pool.known_model(endpoint):
        return known
    model = first_chat_model(await fetch_models(await pool.http(endpoint), endpoint))
    if model is None:
        params = {"server": endpoint.server}
        raise UpstreamError(Failure("llm_rejected", "no_models", retryable=False, setting="LLM_MODEL", params=params))
    pool.remember_model(endpoint, model)
    return model
