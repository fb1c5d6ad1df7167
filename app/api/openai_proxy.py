"""`/v1/chat/completions` for a model of the configured server: the client's request goes on, the answer comes back.

Owns the response to the client: bytes as they come, scaffolding taken out where the client offered no tools, errors in
OpenAI's shape, the server's work ended when the client leaves, and one log line per request. Whether a request may go
on was decided before (`app.guard.proxy`).
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.leaving import LeavableResponse
from app.api.openai_errors import OpenAiError, failure_error, server_error
from app.api.stream import STREAM_HEADERS
from app.catalog import Catalog
from app.clock import Clock
from app.logs import kv
from app.metrics import Metrics
from app.rag.relay import StreamRelay, WholeReply
from app.rag.strip_log import StripLog
from app.upstream.client import Endpoint
from app.upstream.failures import Failure, UpstreamError, failure_of_text, is_html
from app.upstream.passthrough import Passthrough
from app.upstream.transport import ERROR_BODY_LIMIT

REPLY_LIMIT = 64 * 1024 * 1024
"""Bytes of an answer that comes as a whole."""

_log = logging.getLogger("app.proxy")


@dataclass
class ProxyLine:
    """The numbers of one request and its log line."""

    model: str
    mode: str
    verdict: str
    outcome: str = "cancelled"
    status: int = 0
    first_ms: int = 0
    total_ms: int = 0
    scaffold_stripped: int = 0
    usage: Mapping[str, Any] | None = None
    """As the server reported it, where the answer was read. Not part of the line."""
    why: str | None = None
    """Why nothing was delivered, for the guard's log. Not part of the line."""
    metrics: Metrics | None = None
    """Where the request is counted, too. Not part of the line."""

    def log(self) -> None:
        """`proxy_chat model=… mode=… verdict=… outcome=… status=… first_ms=… total_ms=… scaffold_stripped=…`."""
        fields = {key: value for key, value in vars(self).items() if key not in ("usage", "why", "metrics")}
        _log.info(kv("proxy_chat", **fields))
        if self.metrics is not None:
            self.metrics.proxy_ended(self.outcome, self.scaffold_stripped)


@dataclass(frozen=True, slots=True)
class Proxied:
    """A request that goes on. `filtered` says that its content may hold no scaffolding."""

    endpoint: Endpoint
    body: bytes
    filtered: bool


class ProxyResponse(LeavableResponse):
    """Asks the model server once the response begins, and streams what it says until it ends or the client leaves.

    Args:
        line: Filled as the answer goes by, and logged at the end, whatever the end.
    """

    def __init__(self, catalog: Catalog, clock: Clock, proxied: Proxied, line: ProxyLine) -> None:
        super().__init__()
        self._catalog = catalog
        self._clock = clock
        self._proxied = proxied
        self._began = clock.monotonic()
        self.line = line
        self.on_end: Callable[[ProxyLine], None] = lambda _line: None
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the server could not be reached."""

    def ended(self) -> None:
        """Logs the request."""
        self.line.total_ms = self._elapsed_ms()
        self.line.log()
        if self.line.status == 0:
            self.line.why = "left"
        self.on_end(self.line)

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Asks, and tells what comes."""
        asked = Passthrough(self._proxied.endpoint, "/chat/completions", self._proxied.body)
        try:
            await asked.open()
            if asked.status < 300 and "event-stream" in asked.content_type.lower():
                await self._stream(asked, send)
                return
            response = await self._whole(asked)
        except UpstreamError as error:
            if error.failure.code == "llm_unavailable":
                self.on_lost()
            response = self._failed(failure_error(self._catalog, error.failure), error.failure.code)
        finally:
            asked.close()
        self.line.first_ms = self.line.first_ms or self._elapsed_ms()
        self.line.status = response.status_code
        await response(scope, receive, send)

    async def _whole(self, asked: Passthrough) -> Response:
        body = bytearray()
        server: dict[str, object] = {"server": self._proxied.endpoint.server}
        while part := await asked.read():
            body += part
            if asked.status >= 300 and len(body) > ERROR_BODY_LIMIT:
                break
            if len(body) > REPLY_LIMIT:
                raise UpstreamError(Failure("llm_incomplete", "too_long", params=server))
        if 300 <= asked.status < 400 or (asked.status < 300 and is_html(asked.content_type, bytes(body[:200]))):
            raise UpstreamError(
                Failure("llm_rejected", "html" if asked.status < 300 else "redirect", params=server, retryable=False)
            )
        if asked.status >= 400:
            headers = {"Retry-After": asked.retry_after} if _sendable(asked.retry_after) else None
            known = failure_of_text(body.decode(errors="replace"), self._proxied.endpoint, asked.status)
            why = "context" if known is not None and known.code == "context_overflow" else f"http_{asked.status}"
            error = server_error(self._catalog, asked.status, bytes(body), secret=self._proxied.endpoint.api_key)
            return self._failed(error, why, headers)
        self.line.outcome = "ok"
        reply, log = WholeReply(bytes(body), filtered=self._proxied.filtered), StripLog()
        log.add(reply.strips)
        log.end()
        self.line.scaffold_stripped, self.line.usage = reply.stripped_chars, reply.usage
        kind = asked.content_type if _sendable(asked.content_type) else "application/json"
        return Response(reply.body, asked.status, media_type=kind)

    async def _stream(self, asked: Passthrough, send: Send) -> None:
        line, relay, log = self.line, StreamRelay(filtered=self._proxied.filtered), StripLog()
        line.status = asked.status
        kind = asked.content_type if _sendable(asked.content_type) else "text/event-stream"
        headers = {"content-type": kind, **STREAM_HEADERS}
        raw = [(key.lower().encode(), value.encode("ascii")) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": asked.status, "headers": raw})
        try:
            while data := await asked.read():
                line.first_ms = line.first_ms or self._elapsed_ms()
                data = relay.feed(data)
                log.add(relay.drain_strips())
                if data:
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            line.outcome, end = "ok", relay.flush()
        except UpstreamError as error:
            problem = failure_error(self._catalog, error.failure)
            line.outcome, end = "error", relay.cut() + b"\n\ndata: " + json.dumps(problem.body).encode() + b"\n\n"
        finally:  # also for a client that leaves, as many do once the last line came
            if relay.is_complete and line.outcome == "cancelled":
                line.outcome = "ok"
            line.scaffold_stripped, line.usage = relay.stripped_chars, relay.usage
        log.add(relay.drain_strips())
        log.end()
        await send({"type": "http.response.body", "body": end, "more_body": False})

    def _failed(self, error: OpenAiError, why: str, headers: Mapping[str, str] | None = None) -> Response:
        self.line.outcome, self.line.why = "error", why
        return error.response(headers)

    def _elapsed_ms(self) -> int:
        return max(1, round((self._clock.monotonic() - self._began) * 1000))


def _sendable(value: str | None) -> TypeGuard[str]:
    """Whether a header's value may be sent on."""
    return bool(value) and value.isascii() and value.isprintable()
