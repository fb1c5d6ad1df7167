"""How long a request's head may be: the server itself has no limit, and takes time that grows with its square.

A subclass of uvicorn's protocol, since no application sees a request before its head is complete. Bodies are
`app.edge.limits`'. Used by `app.serve`.
"""

import logging

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.logs import kv

HEAD_MAX_BYTES = 64 * 1024

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
)

_log = logging.getLogger(__name__)


class BoundedHead(HttpToolsProtocol):
    """Answers 431 and closes once more than `HEAD_MAX_BYTES` came without a byte of body: a head without end, trailers,
    or what is no request at all. A piece read at once may go over it by its own length."""

    _headless = 0

    def data_received(self, data: bytes) -> None:
        """Takes the next piece, unless what came before was too much already."""
        if self._headless > HEAD_MAX_BYTES:
            if not self.transport.is_closing():
                _log.info(kv("request_refused", path=None, status=431, code="head_too_large"))
                self.transport.write(_REFUSAL)
                self.transport.close()
            return
        self._headless += len(data)
        super().data_received(data)

    def on_body(self, body: bytes) -> None:
        """A body comes: counting begins anew."""
        self._headless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is over: counting begins anew."""
        self._headless = 0
        super().on_message_complete()
