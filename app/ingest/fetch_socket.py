"""A connection whose every step ends in time: at its deadline, when the other side is silent, or when Docent stops.

Owns connecting, TLS and bytes on one socket that never blocks, so that no server can hold a thread. Knows no HTTP and
no rule about addresses. Used by `app.ingest.egress` alone.
"""

import queue
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.clock import Clock
from app.ingest.fetch_errors import FetchError, FetchStoppedError

SLICE_S = 0.1
"""How long a wait goes on before it looks whether Docent stops."""

Resolve = Callable[[str, int], Sequence[str]]
"""A name's addresses, as numbers. Raises OSError."""

Connect = Callable[[str, int], socket.socket]
"""A socket that never blocks and has begun to connect to an address and port. Raises OSError."""

T = TypeVar("T")


def system_resolve(host: str, port: int) -> list[str]:
    """What the system's resolver says, each address once, in its order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def begin_connecting(address: str, port: int) -> socket.socket:
    """Begins a TCP connection to an address given as numbers; nothing is looked up."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((address, port))
    except BlockingIOError:
        pass
    except BaseException:
        sock.close()
        raise
    return sock


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take: `until` is monotonic and ends the whole fetch, `idle_s` one step without a byte."""

    clock: Clock
    until: float
    connect_s: float
    idle_s: float
    is_stopping: Callable[[], bool]

    def left(self, at_most: float) -> float:
        """The monotonic time at which a step that may take `at_most` seconds has to be over."""
        return min(self.until, self.clock.monotonic() + at_most)

    def check(self, until: float) -> None:
        """Raises:
        FetchStoppedError: when Docent stops.
        FetchError: fetch_timeout, after `until`.
        """
        if self.is_stopping():
            raise FetchStoppedError
        if self.clock.monotonic() >= until:
            raise FetchError("fetch_timeout")


def resolved(resolve: Resolve, host: str, port: int, pace: Pace) -> Sequence[str]:
    """The addresses of a name, waited for no longer than for a connection: the system's resolver knows no deadline.

    Raises:
        FetchError: fetch_no_host, fetch_unreachable while names can't be looked up, fetch_timeout.
    """
    answers: queue.SimpleQueue[Sequence[str] | OSError | UnicodeError] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(resolve(host, port))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=work, name="docent-resolve", daemon=True).start()
    until = pace.left(pace.connect_s)
    while True:
        pace.check(until)
        try:
            answer = answers.get(timeout=SLICE_S)
        except queue.Empty:
            continue
        if isinstance(answer, socket.gaierror) and answer.errno == socket.EAI_AGAIN:
            raise FetchError("fetch_unreachable") from answer
        if isinstance(answer, (OSError, UnicodeError)) or not answer:
            raise FetchError("fetch_no_host")
        return answer


class Line:
    """One connection. Errors of the system become `FetchError`."""

    def __init__(self, sock: socket.socket, pace: Pace) -> None:
        self._sock = sock
        self._pace = pace

    @classmethod
    def opened(cls, connect: Connect, address: str, port: int, pace: Pace) -> "Line":
        """A connection that stands.

        Raises:
            FetchError: fetch_unreachable or fetch_timeout.
        """
        try:
            line = cls(connect(address, port), pace)
        except OSError as error:
            raise FetchError("fetch_unreachable") from error
        try:
            line._wait(selectors.EVENT_WRITE, pace.left(pace.connect_s))
            if line._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise FetchError("fetch_unreachable")
        except BaseException:
            line.close()
            raise
        return line

    def secured(self, context: ssl.SSLContext, name: str) -> "Line":
        """The same connection under TLS, its certificate checked for `name`.

        Raises:
            FetchError: fetch_tls, or fetch_timeout.
        """
        line = self
        try:
            self._sock.getpeername()  # where it broke already, wrapping it would leave it open until collected
            sock = context.wrap_socket(self._sock, server_hostname=name, do_handshake_on_connect=False)
            line = Line(sock, self._pace)
            line._done(sock.do_handshake, self._pace.connect_s, selectors.EVENT_READ)
        except BaseException as error:
            line.close()
            if isinstance(error, (ssl.SSLError, ValueError)):
                raise FetchError("fetch_tls") from error
            if isinstance(error, OSError):
                raise FetchError("fetch_unreachable") from error
            raise
        return line

    def read(self, most: int) -> bytes:
        """The bytes that come next; empty at the end.

        Raises:
            FetchError: fetch_timeout, fetch_broken.
        """
        try:
            return self._done(lambda: self._sock.recv(most), self._pace.idle_s, selectors.EVENT_READ)
        except OSError as error:
            raise FetchError("fetch_broken") from error

    def write(self, data: bytes) -> None:
        """Sends all of `data`. Raises as `read` does."""
        view = memoryview(data)
        try:
            while view:
                sent = self._done(lambda part=view: self._sock.send(part), self._pace.idle_s, selectors.EVENT_WRITE)
                view = view[sent:]
        except OSError as error:
            raise FetchError("fetch_broken") from error

    def close(self) -> None:
        """Ends the connection."""
        self._sock.close()

    def _done(self, step: Callable[[], T], at_most: float, usual: int) -> T:
        until = self._pace.left(at_most)
        while True:
            self._pace.check(until)
            try:
                return step()
            except ssl.SSLWantReadError:
                awaited = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                awaited = selectors.EVENT_WRITE
            except BlockingIOError:
                awaited = usual
            self._wait(awaited, until)

    def _wait(self, awaited: int, until: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, awaited)
            while not selector.select(SLICE_S):
                self._pace.check(until)
