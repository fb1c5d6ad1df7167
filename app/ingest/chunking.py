"""Blocks to chunks: what is indexed, embedded, cited and shown. Pure.

Called in the extraction child and by tests; `embedded_text` is also what an embedder is given. Owns no parsing and no
storage.
"""

import hashlib
from dataclasses import dataclass

CHUNKER_VERSION = 1
"""Part of a generation: raise it when the same document would be cut differently."""


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A passage before it has an id: `text == extraction.text[char_start:char_end]`.

    `heading` is the heading path joined by " › ", empty where there is none. Lines are 1-based and inclusive, of the
    canonical text; `page` is where the passage begins. `sha256` is of `embedded_text(title, heading, text)`.
    """

    ordinal: int
    heading: str
    text: str
    char_start: int
    char_end: int
    page: int | None
    line_start: int
    line_end: int
    sha256: str


def embedded_text(title: str, heading: str, text: str) -> str:
    """The text a chunk is embedded as: title, heading path and passage, a line each; the title not said twice."""
    parts = (heading, text) if heading == title or heading.startswith(title + " › ") else (title, heading, text)
    return "\n".join(part for part in parts if part)


def embedded_sha256(title: str, heading: str, text: str) -> str:
    """The key of a chunk's vector: hex sha256 of its embedded text."""
    return hashlib.sha256(embedded_text(title, heading, text).encode()).hexdigest()
