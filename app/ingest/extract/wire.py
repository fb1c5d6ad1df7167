"""What the app and its extraction child say to each other: length-prefixed JSON, and an extraction as JSON. Pure.

A frame is four bytes of length, most significant first, and that many bytes of JSON. The app asks
`{"path", "name", "cpu_s"}` (the path as hex: file names are bytes); the child answers `{"began"}`, any
number of `{"page", "pages"}` and then one `{"extraction", "chunks"}` or `{"error"}`, both with `"last"` when it will
exit.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from app.ingest.blocks import Block, Extraction
from app.ingest.chunking import ChunkDraft

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
        text, fields["title"], fields["mime"], fields["encoding"], fields["pages"], text_yield, blocks
    )
    chunks = [
        ChunkDraft(ordinal, heading, text[start:end], start, end, page, first, last, sha256)
        for ordinal, (heading, start, end, page, first, last, sha256) in enumerate(message["chunks"])
    ]
    return extraction, chunks
