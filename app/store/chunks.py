"""Passages: what a document was cut into.

Owns the chunks table. Full-text rows and vectors follow chunks, but are `app.search.fulltext`'s and
`app.store.vectors`': `app.ingest.pipeline` changes all three in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.store.collections import readable_ids
from app.store.models.library import Chunk, Document


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A passage of a document, as the reader shows it: `text == document.text[char_start:char_end]`."""

    id: int
    document_id: int
    ordinal: int
    heading: str
    text: str
    char_start: int
    char_end: int
    page: int | None
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class TextToEmbed:
    """What a vector is made from: see `app.ingest.chunking.embedded_text`."""

    sha256: str
    title: str
    heading: str
    text: str


def list_chunks(session: Session, user_id: int, document_id: int) -> list[ChunkRow]:
    """A readable document's passages in reading order; empty for a foreign or missing one."""
    query = select(Chunk).where(Chunk.document_id == document_id, _is_readable(user_id)).order_by(Chunk.ordinal)
    return [_row(chunk) for chunk in session.scalars(query)]


def has_any(session: Session) -> bool:
    """Whether there is a passage at all, whoever owns it."""
    return session.scalar(select(Chunk.id).limit(1)) is not None


def get_chunk(session: Session, user_id: int, document_id: int, chunk_id: int) -> ChunkRow:
    """One passage; it must belong to the document.

    Raises:
        NotFoundError: when there is none, or it is not the user's.
    """
    query = select(Chunk).where(Chunk.id == chunk_id, Chunk.document_id == document_id, _is_readable(user_id))
    chunk = session.scalar(query)
    if chunk is None:
        raise NotFoundError
    return _row(chunk)


def add_chunks(session: Session, drafts: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[int]:
    """Stores passages by document id (a `ChunkDraft`'s fields each) and returns the new ids."""
    rows = [{**draft, "document_id": document_id} for document_id, some in drafts.items() for draft in some]
    if not rows:
        return []
    session.execute(insert(Chunk), rows)
    return list(session.scalars(select(Chunk.id).where(Chunk.document_id.in_(drafts)).order_by(Chunk.id)))


def drop_chunks(session: Session, document_id: int) -> list[str]:
    """Deletes a document's passages and returns their keys into `vectors`. Full text must be unindexed before."""
    shas = list(session.scalars(select(Chunk.sha256).where(Chunk.document_id == document_id).distinct()))
    session.execute(delete(Chunk).where(Chunk.document_id == document_id))
    return shas


def ids_of(session: Session, document_id: int) -> list[int]:
    """The ids of a document's passages."""
    return list(session.scalars(select(Chunk.id).where(Chunk.document_id == document_id)))


def having_chunks(session: Session, document_ids: Sequence[int]) -> list[int]:
    """Those of the documents that have passages."""
    return list(session.scalars(select(Chunk.document_id).where(Chunk.document_id.in_(document_ids)).distinct()))


def still_used(session: Session, shas: Sequence[str]) -> set[str]:
    """Those of the keys that some passage holds now."""
    return set(session.scalars(select(Chunk.sha256).where(Chunk.sha256.in_(shas)).distinct()))


def texts_to_embed(session: Session, document_id: int, shas: Sequence[str]) -> list[TextToEmbed]:
    """One text for each of `shas`, at most 500, that the document holds."""
    query = (
        select(Chunk.sha256, Document.title, Chunk.heading, Chunk.text)
        .join(Document, Document.id == Chunk.document_id)
        .where(Chunk.document_id == document_id, Chunk.sha256.in_(shas))
        .order_by(Chunk.ordinal)
    )
    texts = {row.sha256: TextToEmbed(row.sha256, row.title, row.heading, row.text) for row in session.execute(query)}
    return list(texts.values())


def _row(chunk: Chunk) -> ChunkRow:
    return ChunkRow(
        id=chunk.id,
        document_id=chunk.document_id,
        ordinal=chunk.ordinal,
        heading=chunk.heading,
        text=chunk.text,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        page=chunk.page,
        line_start=chunk.line_start,
        line_end=chunk.line_end,
    )


def _is_readable(user_id: int) -> Any:
    living = select(Document.id).where(Document.deleted_at.is_(None), Document.collection_id.in_(readable_ids(user_id)))
    return Chunk.document_id.in_(living)
