"""Reads the PNG files that Docent writes (eight bits, red green blue, filter 0), to look at their pixels."""

import struct
import zlib
from collections.abc import Iterator

WASH = (0xD6, 0xF1, 0xDF)
RULE = (0x0A, 0x6A, 0x42)
WHITE = (255, 255, 255)


class Pixels:
    """A picture; `pixels[x, y]` is a colour."""

    def __init__(self, png: bytes) -> None:
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        parts = dict(_chunks(png[8:]))
        self.width, self.height, *kind = struct.unpack(">IIBBBBB", parts[b"IHDR"])
        assert kind == [8, 2, 0, 0, 0]
        self._stride = 1 + 3 * self.width
        self._data = zlib.decompress(parts[b"IDAT"])
        assert len(self._data) == self._stride * self.height
        assert not any(self._data[:: self._stride])

    def __getitem__(self, place: tuple[float, float]) -> tuple[int, int, int]:
        x, y = (round(at) for at in place)
        assert 0 <= x < self.width
        assert 0 <= y < self.height
        at = y * self._stride + 1 + 3 * x
        red, green, blue = self._data[at : at + 3]
        return red, green, blue

    def extent(self, *colours: tuple[int, int, int]) -> tuple[int, int, int, int] | None:
        """Left, top, right and bottom of all pixels of these colours."""
        xs: list[int] = []
        ys: list[int] = []
        for y in range(self.height):
            line = self._data[y * self._stride + 1 : (y + 1) * self._stride]
            for colour in colours:
                at = line.find(bytes(colour))
                while at >= 0:
                    if at % 3 == 0:
                        xs.append(at // 3)
                        ys.append(y)
                    at = line.find(bytes(colour), at + 1)
        return (min(xs), min(ys), max(xs), max(ys)) if xs else None


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while data:
        (size,) = struct.unpack(">I", data[:4])
        name, body, check = data[4:8], data[8 : 8 + size], data[8 + size : 12 + size]
        assert struct.unpack(">I", check)[0] == zlib.crc32(name + body)
        yield name, body
        data = data[12 + size :]
