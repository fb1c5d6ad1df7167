"""What the app and its extraction child say to each other: length-prefixed JSON, and an extraction as JSON. Pure.

A frame is four bytes of length, most significant first, and that many bytes of JSON. The app asks
`{"path", "name", "cpu_s"}` (the path as hex: file names are bytes), with `"recognised"` for what was found in pictures
of its pages and `"charset"` for what a server called its encoding, or with `"picture": <index>` for such a picture; the
child answers `{"began"}`, any number of `{"page", "pages"}` and then one `{"extraction", "chunks"}`, `{"picture"}` or
`{"error"}`, each with `"last"` when it will exit.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from app.ingest.blocks import Block, Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.extract.pdf_lines import Cell, Line, PageImage, PageLines

HEADER_BYTES = 4


def frame(message: dict[str, Any]) -> bytes:
    """A message as it goes through the pipe."""
    payload = orjson.dumps(message)
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def payload_size(header: bytes) -> int:
    """The number of bytes that follow a header."""
    return int.from_bytes(header, "big")


def pack(extraction: Extraction, chunks: Sequence[ChunkDraft]) -> dict[str, Any]:
    """An extraction and its chunks without the text twice: blocks and chunks as offsets."""
    return {
        "extraction": {
            "text": extraction.text,
            "title": extraction.title,
            "mime": extraction.mime,
            "encoding": extraction.encoding,
            "pages": extraction.pages,
            "text_yield": extraction.text_yield,
            "cut": extraction.cut,
            "blocks": [(b.kind, b.level, b.char_start, b.char_end, b.page, b.label) for b in extraction.blocks],
        },
        "chunks": [(c.heading, c.char_start, c.char_end, c.page, c.line_start, c.line_end, c.sha256) for c in chunks],
    }


def unpack(message: dict[str, Any]) -> tuple[Extraction, list[ChunkDraft]]:
    """What `pack` took."""
    fields = message["extraction"]
    text: str = fields["text"]
    blocks = tuple(
        Block(kind, text[start:end], level, start, end, page, label)
        for kind, level, start, end, page, label in fields["blocks"]
    )
    text_yield = tuple(fields["text_yield"]) if fields["text_yield"] is not None else None
    extraction = Extraction(
        text,
        fields["title"],
        fields["mime"],
        fields["encoding"],
        fields["pages"],
        text_yield,
        blocks,
        cut=fields["cut"],
    )
    chunks = [
        ChunkDraft(ordinal, heading, text[start:end], start, end, page, first, last, sha256)
        for ordinal, (heading, start, end, page, first, last, sha256) in enumerate(message["chunks"])
    ]
    return extraction, chunks


def pack_lines(page: PageLines) -> dict[str, Any]:
    """A page's lines as JSON; also what `recognised_pages.lines` holds."""
    lines = [[line.y, line.size, [[cell.text, cell.x0, cell.x1] for cell in line.cells]] for line in page.lines]
    return {"height": page.height, "lines": lines}


def unpack_lines(packed: Mapping[str, Any]) -> PageLines:
    """What `pack_lines` took."""
    lines = (Line(tuple(Cell(*cell) for cell in cells), y, size) for y, size, cells in packed["lines"])
    return PageLines(packed["height"], tuple(lines))


def pack_picture(picture: PageImage) -> dict[str, Any]:
    """A page's picture as JSON."""
    fields = {"scale": picture.scale, "height": picture.height, "pages": picture.pages}
    return {"picture": {"pgm": b64encode(picture.pgm).decode(), **fields}}


def unpack_picture(message: Mapping[str, Any]) -> PageImage:
    """What `pack_picture` took."""
    fields = message["picture"]
    return PageImage(b64decode(fields["pgm"]), fields["scale"], fields["height"], fields["pages"])
