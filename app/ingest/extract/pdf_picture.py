"""A drawn page's pixels: tinting and framing rectangles, and the PNG file. Pure.

Called by `pdf_page`. Tinting multiplies, as a highlighter does: letters stay as dark as they were, whatever the page
painted under them. The file is a PNG of the simplest kind (W3C PNG specification: colour type 2, eight bits, no
interlacing, filter 0).
"""

import struct
import zlib
from collections.abc import Iterable

from app.ingest.extract.pdf_boxes import Box

WASH = (0xD6, 0xF1, 0xDF)
RULE = (0x0A, 0x6A, 0x42)
"""Lamp-wash and lamp of the light theme: a page is white paper in the dark, too."""
_PIXEL = 3
_LEVEL = 6


class Picture:
    """`width` × `height` pixels of three bytes (red, green, blue), rows one after the other."""

    def __init__(self, width: int, height: int, pixels: bytearray) -> None:
        self.width = width
        self.height = height
        self._pixels = pixels

    def tint(self, box: Box) -> None:
        """Multiplies the box with the wash."""
        left, top, right, bottom = self._inside(box)
        for row in range(top, bottom):
            start, end = (row * self.width + left) * _PIXEL, (row * self.width + right) * _PIXEL
            for channel, table in enumerate(_TABLES):
                part = slice(start + channel, end, _PIXEL)
                self._pixels[part] = self._pixels[part].translate(table)

    def frame(self, box: Box, *, line: int, rule: int) -> None:
        """Draws a frame around the box, `line` pixels wide, its left side `rule` pixels."""
        left, top, right, bottom = box
        for side in (
            Box(left - rule, top - line, left, bottom + line),
            Box(right, top - line, right + line, bottom + line),
            Box(left, top - line, right, top),
            Box(left, bottom, right, bottom + line),
        ):
            self._fill(side)

    def png(self) -> bytes:
        """The picture as a file."""
        stride = self.width * _PIXEL
        lines = b"".join(b"\x00" + self._pixels[row * stride : (row + 1) * stride] for row in range(self.height))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, _LEVEL)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)

    def _fill(self, box: Box) -> None:
        left, top, right, bottom = self._inside(box)
        line = bytes(RULE) * (right - left)
        for row in range(top, bottom):
            start = (row * self.width + left) * _PIXEL
            self._pixels[start : start + len(line)] = line

    def _inside(self, box: Box) -> tuple[int, int, int, int]:
        left, right = (min(max(round(at), 0), self.width) for at in (box.left, box.right))
        top, bottom = (min(max(round(at), 0), self.height) for at in (box.top, box.bottom))
        return left, top, max(left, right), max(top, bottom)


def _tables(colour: Iterable[int]) -> tuple[bytes, ...]:
    return tuple(bytes(value * part // 255 for value in range(256)) for part in colour)


_TABLES = _tables(WASH)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
