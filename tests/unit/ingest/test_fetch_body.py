"""Unpacking an answer: whole, in any cut, and never beyond the limit."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.fetch_body import PIECE_BYTES, unpacked
from app.ingest.fetch_errors import FetchError

LIMIT = 10_000_000


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _refused(parts: list[bytes], encoding: str, limit: int = LIMIT) -> str:
    with pytest.raises(FetchError) as caught:
        list(unpacked(parts, encoding, limit))
    return caught.value.reason


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 400), st.sampled_from(["gzip", " X-GZip "]))
def test_gzip_gives_what_was_packed_however_it_is_cut(members: list[bytes], size: int, encoding: str) -> None:
    """Several members one after the other are one body; no piece is empty."""
    packed = b"".join(gzip.compress(member) for member in members)
    pieces = list(unpacked(_cut(packed, size), encoding, LIMIT))
    assert b"".join(members) == b"".join(pieces)
    assert all(pieces)


def test_a_body_that_is_not_compressed_passes_as_it_is() -> None:
    """With "identity", and without any word."""
    assert list(unpacked([b"a", b"", b"bc"], "", 3)) == [b"a", b"bc"]
    assert list(unpacked([b"abc"], "identity", 3)) == [b"abc"]


def test_a_bomb_costs_one_piece_more_than_the_limit() -> None:
    """A hundred megabytes of zeros in a hundred kilobytes end at the limit."""
    packed = gzip.compress(bytes(100_000_000), 1)
    taken: list[int] = []
    with pytest.raises(FetchError, match="fetch_too_large"):
        taken.extend(map(len, unpacked([packed], "gzip", 1_000_000)))
    assert max(taken) <= PIECE_BYTES
    assert 900_000 < sum(taken) <= 1_000_000


def test_bytes_as_they_come_have_the_same_limit() -> None:
    """What is long without unpacking is too long, too."""
    assert _refused([b"x" * 60, b"x" * 60], "", 100) == "fetch_too_large"
    assert _refused([gzip.compress(b"x")[:10] + bytes(200)], "gzip", 100) == "fetch_too_large"


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "gzip,br", "\u00ff"])
def test_what_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    """A compression whose size can't be bounded is refused, a bomb in a bomb included."""
    assert _refused([zlib.compress(b"x")], encoding) == "fetch_encoding"


def test_damaged_and_cut_bodies_are_broken() -> None:
    """No gzip at all, a wrong sum, and an end that is missing."""
    packed = gzip.compress(b"some words" * 1000)
    assert _refused([b"no gzip"], "gzip") == "fetch_broken"
    assert _refused([packed[:-8] + b"\0" * 8], "gzip") == "fetch_broken"
    assert _refused([packed[:-9]], "gzip") == "fetch_broken"


def test_what_follows_the_last_member_is_dropped() -> None:
    """Servers that pad a body lose nothing."""
    assert list(unpacked([gzip.compress(b"words") + b"\0\0padding", b"more"], "gzip", LIMIT)) == [b"words"]
