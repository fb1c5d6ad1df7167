"""What a turn reads of one whole document: its names, its state, its text, and where its chunks begin.

Every function takes a `Scope` and applies it in SQL: what the user may read and the turn's filters let through. Which
document a question means is `app.api.document_meant`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.models.library import Chunk, Collection, Document
from app.store.scope import Scope, in_scope


@dataclass(frozen=True, slots=True)
class WholeDocumentRow:
    """A document with its canonical text, None while it was not read; `collection` is the collection's slug."""

    id: int
    collection: str
    path: str
    title: str
    status: str
    error: str | None
    text: str | None

    @property
    def is_readable(self) -> bool:
        """Whether there is a text that counts: that of a failed document does not."""
        return self.status != "failed" and bool(self.text and self.text.strip())

    @property
    def address(self) -> str:
        """How tools name it."""
        return f"/{self.collection}/{self.path}"


@dataclass(frozen=True, slots=True)
class ChunkStart:
    """Where a chunk begins in the text, and what it stands under."""

    id: int
    heading: str
    page: int | None
    char_start: int


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk as a passage needs it."""

    id: int
    document_id: int
    heading: str
    page: int | None
    text: str
    char_start: int
    char_end: int
    line_start: int
    line_end: int


def read_document(session: Session, scope: Scope, document_id: int) -> WholeDocumentRow | None:
    """The document; None where it is not in scope."""
    query = (
        select(
            Document.id,
            Collection.slug,
            Document.path,
            Document.title,
            Document.status,
            Document.error,
            Document.text,
        )
        .join(Collection, Collection.id == Document.collection_id)
        .where(Document.id == document_id, *in_scope())
    )
    row = session.execute(query, scope.parameters()).first()
    return None if row is None else WholeDocumentRow(*row)


def chunk_starts(session: Session, scope: Scope, document_id: int) -> list[ChunkStart]:
    """Its chunks in order."""
    query = (
        select(Chunk.id, Chunk.heading, Chunk.page, Chunk.char_start)
        .join(Document, Document.id == Chunk.document_id)
        .where(Chunk.document_id == document_id, *in_scope())
        .order_by(Chunk.ordinal)
    )
    return [ChunkStart(*row) for row in session.execute(query, scope.parameters())]


def chunk_texts(session: Session, scope: Scope, chunk_ids: Sequence[int]) -> dict[int, ChunkText]:
    """By id those of the chunks that are in scope."""
    query = (
        select(
            Chunk.id,
            Chunk.document_id,
            Chunk.heading,
            Chunk.page,
            Chunk.text,
            Chunk.char_start,
            Chunk.char_end,
            Chunk.line_start,
            Chunk.line_end,
        )
        .join(Document, Document.id == Chunk.document_id)
        .where(Chunk.id.in_(chunk_ids), *in_scope())
    )
    return {row.id: ChunkText(*row) for row in session.execute(query, scope.parameters())}
