"""Somebody else's request to the model server, and the answer's bytes as they come.

Owns sending a body unchanged, trying again when the connection fails before there is an answer, and the clocks of
waiting. Reads nothing of the answer but its head. Used by `app.api.openai_proxy` only; Docent's own turns go through
`app.upstream.exchange`.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2

from app.upstream.client import ClientPool, Endpoint
from app.upstream.failures import Failure, UpstreamError, failure_of

BACKOFF_S = 0.25


class Passthrough:
    """One request, `method` to `base_url + path`. To be closed, whatever happened; closing ends the server's work.

    `tries` is how often it was sent. Once opened, `status`, `content_type` and `retry_after` are the answer's.
    """

    def __init__(self, pool: ClientPool, endpoint: Endpoint, path: str, body: bytes) -> None:
        self.tries = 0
        self.status = 0
        self.content_type = ""
        self.retry_after: str | None = None
        self._pool = pool
        self._endpoint = endpoint
        self._path = path
        self._body = body
        self._stack = AsyncExitStack()
        self._parts: AsyncIterator[bytes] | None = None
        self._wait_s = endpoint.first_token_s
        self._deadline = math.inf

    async def open(self) -> None:
        """Sends the request and waits for the answer's head, up to LLM_FIRST_TOKEN_S; tried again up to LLM_RETRY_MAX
        times while there is no connection.

        Raises:
            UpstreamError: when there is no answer.
        """
        self._deadline = asyncio.get_running_loop().time() + self._endpoint.total_s
        while True:
            self.tries += 1
            try:
                async with asyncio.timeout(self._endpoint.first_token_s):
                    await self._send()
                return
            except TimeoutError:
                raise self._timed_out("first_token") from None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                failure = failure_of(error, self._endpoint)
                if failure.retry != "connect" or self.tries > self._endpoint.retry_max:
                    raise UpstreamError(failure) from None
            await asyncio.sleep(BACKOFF_S * 2 ** (self.tries - 1))

    async def read(self) -> bytes:
        """The next bytes as they come, waited for up to LLM_IDLE_S (the first ones up to LLM_FIRST_TOKEN_S); empty at
        the end.

        Raises:
            UpstreamError: when the connection breaks, or a clock runs out.
        """
        assert self._parts is not None, "read before open"
        left = self._deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0, min(self._wait_s, left))):
                part = await anext(self._parts)
        except StopAsyncIteration:
            return b""
        except TimeoutError:
            raise self._timed_out("total" if left <= self._wait_s else "idle") from None
        except httpx2.HTTPError:
            raise UpstreamError(Failure("llm_incomplete", "cut", params={"server": self._endpoint.server})) from None
        self._wait_s = self._endpoint.idle_s
        return part

    async def aclose(self) -> None:
        """Closes the connection unless the answer was read to its end. Safe to call twice."""
        await self._stack.aclose()

    async def _send(self) -> None:
        http = await self._pool.http(self._endpoint)
        headers = {"Content-Type": "application/json"}
        url = f"{self._endpoint.base_url}{self._path}"
        response = await self._stack.enter_async_context(http.stream("POST", url, content=self._body, headers=headers))
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "")
        self.retry_after = response.headers.get("retry-after")
        self._parts = response.aiter_bytes()

    def _timed_out(self, reason: str) -> UpstreamError:
        params: dict[str, object] = {"server": self._endpoint.server, "seconds": round(self._wait_s)}
        return UpstreamError(Failure("llm_timeout", reason, params=params))
