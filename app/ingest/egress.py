"""The one place from which Docent asks another machine for a document (security.md F2).

Owns that check and connection can't come apart: the library that speaks HTTP gets its connections from here only, and
here every address of a name is judged before the first of them is connected to, for each redirect anew. No proxy, no
cookie, no password, no other compression than gzip. What is asked for and what becomes of it is
`app.ingest.fetch_work`'s; only what a person added is ever asked for.
"""

import re
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpcore2

from app import __version__
from app.clock import Clock
from app.ingest.extract.decode import charset_codec
from app.ingest.fetch_address import WebAddress, redirected
from app.ingest.fetch_body import unpacked
from app.ingest.fetch_errors import FetchError, FetchReason
from app.ingest.fetch_rules import Rules, is_number
from app.ingest.fetch_socket import Connect, Line, Pace, Resolve, begin_connecting, resolved, system_resolve

REDIRECTS = 5
TRIED_ADDRESSES = 4
"""Addresses of one name that are tried one after the other; all of them are judged before."""

WAIT_MAX_S = 300.0
"""The longest that a server's Retry-After is heeded."""

VALIDATOR_CHARS = 512

_HEADERS = {
    "User-Agent": f"Docent/{__version__}",
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
_STATUS: dict[int, FetchReason] = {
    **dict.fromkeys((404, 410), "fetch_not_found"),
    **dict.fromkeys((401, 402, 403, 407, 451), "fetch_denied"),
    **dict.fromkeys((429, 503), "fetch_busy"),
    408: "fetch_timeout",
}
_CHARSET = re.compile(rb";\s*charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_MOVED = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may take: bytes as they come and unpacked, and seconds."""

    max_bytes: int
    connect_s: float = 10.0
    idle_s: float = 30.0
    total_s: float = 180.0


@dataclass(frozen=True, slots=True)
class Doors:
    """How names become addresses and addresses connections; tests bring their own."""

    resolve: Resolve = system_resolve
    connect: Connect = begin_connecting
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context


@dataclass(frozen=True, slots=True)
class Known:
    """What the server said of the bytes that are here already; asked about only at the address that gave them."""

    final_url: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: where it came from in the end, whether it is what is `Known`, what to say of it the next time, and
    what its sender calls its encoding."""

    final_url: str
    is_unchanged: bool
    etag: str | None = None
    last_modified: str | None = None
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: the address, where the bytes go, what is known, and whether Docent stops meanwhile."""

    address: WebAddress
    write: Callable[[bytes], object]
    known: Known | None = None
    is_stopping: Callable[[], bool] = field(default=lambda: False)


class Egress:
    """Fetches pages. Safe to use from several threads."""

    def __init__(self, rules: Rules, limits: Limits, clock: Clock, doors: Doors | None = None) -> None:
        self._rules = rules
        self._limits = limits
        self._clock = clock
        self._doors = doors or Doors()
        self._tls: ssl.SSLContext | None = None

    def fetch(self, order: Order) -> Fetched:
        """Asks for a page and hands its bytes to `order.write` while they come. Blocks.

        Raises:
            FetchError: with the reason; some bytes may have been written.
            FetchStoppedError: when Docent stops.
            OSError: of `order.write`.
        """
        limits = self._limits
        until = self._clock.monotonic() + limits.total_s
        pace = Pace(self._clock, until, limits.connect_s, limits.idle_s, order.is_stopping)
        address = order.address
        for _ in range(REDIRECTS + 1):
            answer = self._ask(address, order, pace)
            if isinstance(answer, Fetched):
                return answer
            address = answer
        raise FetchError("fetch_redirects")

    def _ask(self, address: WebAddress, order: Order, pace: Pace) -> Fetched | WebAddress:
        """One request: the answer, or where it says to ask instead."""
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        known = order.known if order.known is not None and order.known.final_url == address.text else None
        headers = {"Host": address.authority, **_HEADERS, **_conditions(known)}
        network = _Network(self._rules, self._doors, pace)
        if address.scheme == "https" and self._tls is None:
            self._tls = self._doors.tls()
        try:
            with (
                httpcore2.ConnectionPool(self._tls, max_connections=1, network_backend=network) as pool,
                pool.stream("GET", url, headers=list(headers.items())) as response,
            ):
                return self._answer(address, response, order.write, known)
        except (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.UnsupportedProtocol) as error:
            raise FetchError("fetch_broken") from error

    def _answer(
        self, address: WebAddress, response: httpcore2.Response, write: Callable[[bytes], object], known: Known | None
    ) -> Fetched | WebAddress:
        headers = {name.lower(): value for name, value in reversed(response.headers)}
        if response.status in _MOVED and b"location" in headers:
            return redirected(address, headers[b"location"])
        if response.status == 304 and known is not None:
            return Fetched(address.text, True, known.etag, known.last_modified)
        if response.status not in (200, 203):
            raise _refusal(response.status, headers)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._limits.max_bytes:
            raise FetchError("fetch_too_large")
        encoding = headers.get(b"content-encoding", b"").decode("latin-1")
        for piece in unpacked(response.iter_stream(), encoding, self._limits.max_bytes):
            write(piece)
        said = _text(headers.get(b"etag")), _text(headers.get(b"last-modified"))
        return Fetched(address.text, False, *said, _charset(headers.get(b"content-type", b"")))


class _Network(httpcore2.NetworkBackend):
    """Where the HTTP library gets its connections: names are resolved, judged and connected to in one step."""

    def __init__(self, rules: Rules, doors: Doors, pace: Pace) -> None:
        self._rules = rules
        self._doors = doors
        self._pace = pace

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """A connection to one of the host's addresses.

        Raises:
            FetchError: when any of them may not be connected to, or none answers.
        """
        found = [host] if is_number(host) else resolved(self._doors.resolve, host, port, self._pace)
        allowed = [self._rules.check(address, port) for address in found]
        failed = FetchError("fetch_unreachable")
        for address in allowed[:TRIED_ADDRESSES]:
            try:
                return _Stream(Line.opened(self._doors.connect, address, port, self._pace))
            except FetchError as error:
                failed = error
        raise failed


class _Stream(httpcore2.NetworkStream):
    """A connection in the form the library wants; the clocks are those of the fetch."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes."""
        return self._line.read(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Sends bytes."""
        self._line.write(buffer)

    def close(self) -> None:
        """Ends the connection."""
        self._line.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The connection under TLS, for the name that was asked for, whatever address it has."""
        return _Stream(self._line.secured(ssl_context, server_hostname or ""))

    def get_extra_info(self, info: str) -> Any:
        """Nothing: no second protocol is offered."""
        return None


def _conditions(known: Known | None) -> dict[str, str]:
    if known is None:
        return {}
    given = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in given.items() if value}


def _refusal(status: int, headers: dict[bytes, bytes]) -> FetchError:
    reason = _STATUS.get(status, "fetch_server" if 500 <= status <= 599 else "fetch_status")
    wait = headers.get(b"retry-after", b"")
    return FetchError(reason, wait_s=min(WAIT_MAX_S, int(wait)) if wait.isdigit() and len(wait) < 9 else 0.0)


def _charset(content_type: bytes) -> str | None:
    """The charset of a Content-Type, where it is one that texts can be read by."""
    found = _CHARSET.search(content_type)
    name = found[1].decode("ascii").lower() if found else ""
    return name if name and charset_codec(name) else None


def _text(value: bytes | None) -> str | None:
    """A validator that can be sent back as it came."""
    if not value or len(value) > VALIDATOR_CHARS:
        return None
    with suppress(UnicodeDecodeError):
        return value.decode("ascii")
    return None
