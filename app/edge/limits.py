"""How much a request may send: a cap on every body but those of routes with their own.

Checked by the announced length, then counted as it arrives, so that a body of unknown length can't fill the memory.
Pure ASGI; the count ends a route's read with 413.
"""

import logging
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.edge.errors import ErrorResponses
from app.errors import TooLargeError
from app.logs import kv

BODY_MAX_BYTES = 1024 * 1024
JSON_BYTES_PER_CHAR = 12
"""A character written as two JSON escapes; so a question at its limit fits whatever it holds."""

_log = logging.getLogger(__name__)


def body_limit(question_max_chars: int) -> int:
    """Bytes that a body may have where a question of so many characters must fit in."""
    return BODY_MAX_BYTES + JSON_BYTES_PER_CHAR * question_max_chars


class BodyLimit:
    """Refuses bodies over `limit` bytes with 413.

    Args:
        own_limit: Paths whose POST bodies have a limit of their own, which the route keeps.
    """

    def __init__(self, app: ASGIApp, limit: int, own_limit: Collection[str], respond: ErrorResponses) -> None:
        self._app = app
        self._limit = limit
        self._own_limit = frozenset(own_limit)
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or (scope["method"] == "POST" and scope["path"] in self._own_limit):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self._limit:
            error = TooLargeError()
            _log.info(kv("request_refused", path=scope["path"], status=error.status, code=error.code))
            await self._respond(Request(scope), error)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(TooLargeError.status)
            return message

        await self._app(scope, counted, send)
