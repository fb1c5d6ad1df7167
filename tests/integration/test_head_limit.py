"""A request's head has a limit, on a real socket."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(Path(tmp_path_factory.mktemp("head")) / "data") as server:
        yield server


def answer_to(server: ServerProcess, *pieces: bytes) -> bytes:
    """What comes back, whether or not the server read it all."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            pass
    return received


HEAD = b"POST /api/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
LONG = [b"a" * 65536] * 200


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD + b"x: ", *LONG],
        [HEAD, *[b"x%d: %s\r\n" % (number, piece) for number, piece in enumerate(LONG)]],
        [b"GET /", *LONG],
        [HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: ", *LONG],
    ],
    ids=["one header", "many headers", "an address", "trailers"],
)
def test_a_head_without_end_is_cut_off(server: ServerProcess, pieces: list[bytes]) -> None:
    """Thirteen megabytes of it are not taken; the server goes on."""
    assert b" 200 " not in answer_to(server, *pieces).partition(b"\r\n")[0]
    assert server.request("GET", "/healthz")[0] == 200


def test_a_cut_off_head_leaves_one_line(server: ServerProcess) -> None:
    """An operator sees why."""
    before = server.log().count("code=head_too_large")
    answer_to(server, b"GET /", *LONG)
    assert server.request("GET", "/healthz")[0] == 200
    assert server.log().count("code=head_too_large") == before + 1


def test_a_long_body_is_no_head(server: ServerProcess) -> None:
    """A body far longer than a head may be arrives, in pieces, after a head of its own."""
    body = b'{"query": "' + b"words " * 20_000 + b'"}'
    head = HEAD + b"content-length: %d\r\n\r\n" % len(body)
    assert answer_to(server, head, body[:100_000], body[100_000:]).startswith(b"HTTP/1.1 422 ")
