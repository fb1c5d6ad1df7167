"""A connection that never holds anybody: what the system does in odd moments, and what it is called then."""

import socket
import ssl
import struct
from collections.abc import Iterator

import pytest

from app.clock import SystemClock
from app.ingest.fetch_errors import FetchError, FetchStoppedError
from app.ingest.fetch_socket import Line, Pace, begin_connecting, resolved, system_resolve

Ends = tuple[socket.socket, socket.socket]


def _pace(*, idle_s: float = 5.0, total_s: float = 10.0, stopping: bool = False) -> Pace:
    clock = SystemClock()
    return Pace(clock, clock.monotonic() + total_s, 5.0, idle_s, lambda: stopping)


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Ours, which never blocks, and the other side's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = begin_connecting(*listener.getsockname())
        theirs, _ = listener.accept()
        with ours, theirs:
            yield ours, theirs


def _hang_up(theirs: socket.socket) -> None:
    """Ends a connection the hard way: the other side learns it by a reset."""
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()


def test_a_name_of_this_machine_is_resolved_by_the_system() -> None:
    """Numbers, each once."""
    found = system_resolve("localhost", 80)
    assert set(found) & {"127.0.0.1", "::1"}
    assert len(set(found)) == len(found)


def test_an_address_that_can_not_be_reached_says_so() -> None:
    """A network that is not there; the socket is closed again, whatever was wrong."""

    def unreachable(address: str, port: int) -> socket.socket:
        raise OSError(101, "Network is unreachable")

    with pytest.raises(FetchError, match="fetch_unreachable"):
        Line.opened(unreachable, "192.0.2.1", 80, _pace())
    with pytest.raises(OverflowError):
        begin_connecting("127.0.0.1", 70_000)


def test_bytes_go_both_ways_however_slowly_they_are_taken(ends: Ends) -> None:
    """More than the system holds is sent in parts; what nobody takes is given up in time."""
    ours, theirs = ends
    line = Line(ours, _pace(idle_s=0.2))
    line.write(b"hello")
    assert theirs.recv(100) == b"hello"
    theirs.sendall(b"well")
    assert line.read(2) + line.read(2) == b"well"
    with pytest.raises(FetchError, match="fetch_timeout"):
        line.write(b"x" * 20_000_000)
    with pytest.raises(FetchError, match="fetch_timeout"):
        line.read(10)


def test_a_connection_that_is_reset_is_broken(ends: Ends) -> None:
    """In reading, in writing, and in agreeing on TLS."""
    ours, theirs = ends
    line = Line(ours, _pace())
    _hang_up(theirs)
    with pytest.raises(FetchError, match="fetch_broken"):
        line.read(10)
    with pytest.raises(FetchError, match="fetch_broken"):
        line.write(b"x")


def test_a_handshake_with_somebody_who_hangs_up_is_no_matter_of_trust(ends: Ends) -> None:
    """A reset is not a bad certificate: it may be gone the next time."""
    ours, theirs = ends
    _hang_up(theirs)
    with pytest.raises(FetchError, match="fetch_unreachable"):
        Line(ours, _pace()).secured(ssl.create_default_context(), "example.org")
    assert ours.fileno() == -1


def test_a_stop_counts_before_anything_else(ends: Ends) -> None:
    """Nothing is sent, read, resolved or agreed upon any more."""
    ours, theirs = ends
    theirs.sendall(b"ready to be read")
    line = Line(ours, _pace(stopping=True))
    with pytest.raises(FetchStoppedError):
        line.read(10)
    with pytest.raises(FetchStoppedError):
        resolved(system_resolve, "localhost", 80, _pace(stopping=True))
    with pytest.raises(FetchStoppedError):
        line.secured(ssl.create_default_context(), "example.org")
    assert ours.fileno() == -1
