"""An answer's body as it was before it was compressed, in pieces of a bounded size. Pure.

Only gzip is asked for, because zlib can be told where to stop: a bomb costs one piece more than the limit. Used by
`app.ingest.egress`.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from app.ingest.fetch_errors import FetchError

PIECE_BYTES = 64 * 1024

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
"""zlib's number for a gzip header with the largest window."""


class _Decoder(Protocol):
    """What zlib's object for unpacking can do."""

    @property
    def eof(self) -> bool: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpacked(parts: Iterable[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """The body's bytes, none of the pieces empty.

    Args:
        encoding: The answer's Content-Encoding.
        limit: Bytes that may come, and bytes they may unpack to.

    Raises:
        FetchError: fetch_too_large, fetch_encoding, fetch_broken.
    """
    name = encoding.strip().lower()
    came = _counted(parts, limit)
    if name in ("", "identity"):
        yield from came
    elif name in ("gzip", "x-gzip"):
        yield from _counted(_gunzipped(came), limit)
    else:
        raise FetchError("fetch_encoding")


def _counted(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > limit:
            raise FetchError("fetch_too_large")
        if part:
            yield part


def _gunzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    """All members, one after the other; what follows the last one and is no member is dropped, as programs do."""
    decoder = zlib.decompressobj(_GZIP_WINDOW)
    is_begun = is_over = False
    for part in parts:
        data = part
        while data and not is_over:
            if decoder.eof:
                is_over = not _GZIP_MAGIC.startswith(data[:2])
                decoder = decoder if is_over else zlib.decompressobj(_GZIP_WINDOW)
                continue
            is_begun = True
            yield from _out_of(decoder, data)
            data = decoder.unused_data
    if is_begun and not decoder.eof:
        raise FetchError("fetch_broken")


def _out_of(decoder: _Decoder, data: bytes) -> Iterator[bytes]:
    while True:
        try:
            piece = decoder.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise FetchError("fetch_broken") from error
        yield piece
        data = decoder.unconsumed_tail
        if decoder.eof or (not data and len(piece) < PIECE_BYTES):
            return
