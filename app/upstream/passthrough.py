"""Somebody else's request to the model server, and the answer's bytes as they come.

Owns sending a body unchanged, trying again when the connection fails before there is an answer, and the clocks of
waiting. Reads nothing of the answer but its head. Used by `app.api.openai_proxy` only; Docent's own turns go through
`app.upstream.exchange`.
"""

import asyncio
import math

import httpx2

from app.upstream.client import Endpoint
from app.upstream.failures import Failure, UpstreamError, failure_of
from app.upstream.raw_http import RawExchange, ask

BACKOFF_S = 0.25


class Passthrough:
    """One request, `body` to `base_url + path`. To be closed, whatever happened; closing ends the server's work.

    `tries` is how often it was sent. Once opened, `status`, `content_type` and `retry_after` are the answer's.
    """

    def __init__(self, endpoint: Endpoint, path: str, body: bytes) -> None:
        self.tries = 0
        self.status = 0
        self.content_type = ""
        self.retry_after: str | None = None
        self._endpoint = endpoint
        self._path = path
        self._body = body
        self._exchange: RawExchange | None = None
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
                await self._send()
                return
            except TimeoutError:
                raise self._timed_out("first_token") from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                failure = failure_of(error, self._endpoint)
                if failure.retry != "connect" or self.tries > self._endpoint.retry_max:
                    raise UpstreamError(failure) from None
            self.close()
            await asyncio.sleep(BACKOFF_S * 2 ** (self.tries - 1))

    async def read(self) -> bytes:
        """The next bytes as they come, waited for up to LLM_IDLE_S (the first ones up to LLM_FIRST_TOKEN_S); empty at
        the end.

        Raises:
            UpstreamError: when the connection breaks, or a clock runs out.
        """
        assert self._exchange is not None, "read before open"
        left = self._deadline - asyncio.get_running_loop().time()
        try:
            part = await self._exchange.read(max(0, min(self._wait_s, left)))
        except TimeoutError:
            raise self._timed_out("total" if left <= self._wait_s else "idle") from None
        except httpx2.HTTPError:
            raise UpstreamError(Failure("llm_incomplete", "cut", params={"server": self._endpoint.server})) from None
        self._wait_s = self._endpoint.idle_s
        return part

    def close(self) -> None:
        """Closes the connection, which ends the server's work. Safe to call twice."""
        if self._exchange is not None:
            self._exchange.abort()

    async def _send(self) -> None:
        self._exchange = exchange = await ask(self._endpoint, self._path, self._body)
        await exchange.head(self._endpoint.first_token_s)
        self.status = exchange.status
        self.content_type = exchange.headers.get("content-type", "")
        self.retry_after = exchange.headers.get("retry-after")

    def _timed_out(self, reason: str) -> UpstreamError:
        params: dict[str, object] = {"server": self._endpoint.server, "seconds": round(self._wait_s)}
        return UpstreamError(Failure("llm_timeout", reason, params=params))
