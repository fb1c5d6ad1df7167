"""What the tools of a turn read: names, texts and places of documents.

Every function takes a `Scope` and applies it in SQL: living documents in collections that the user may read and that
the turn's filters let through. Nothing else exists for a tool. Blocking; called by `app.rag.tools` in threads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from app.store.collections import readable_ids
from app.store.models.library import Chunk, Collection, Document
from app.store.scope import Scope, in_scope


@dataclass(frozen=True, slots=True)
class ShownCollection:
    """A collection, and how many of its documents are in scope."""

    id: int
    name: str
    slug: str
    documents: int


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document's names and state. `bytes` is the file's size; without a `has_text` there is nothing to read, and
    `status` and `error` say why."""

    id: int
    collection: str
    """The collection's slug."""
    path: str
    title: str
    bytes: int
    status: str
    error: str | None
    has_text: bool

    @property
    def address(self) -> str:
        """How tools name it: `/<collection>/<path>`."""
        return f"/{self.collection}/{self.path}"


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """The chunk that stands for a stretch of text."""

    id: int
    heading: str
    page: int | None


def list_collections(session: Session, scope: Scope) -> list[ShownCollection]:
    """The collections in scope by slug; where the filters look at documents, only those that hold one of them."""
    counted = (
        select(Document.collection_id, func.count().label("documents"))
        .where(*in_scope())
        .group_by(Document.collection_id)
        .subquery()
    )
    number = func.coalesce(counted.c.documents, 0)
    query = (
        select(Collection.id, Collection.name, Collection.slug, number)
        .outerjoin(counted, counted.c.collection_id == Collection.id)
        .where(Collection.id.in_(readable_ids(scope.user_id)))
        .order_by(Collection.slug)
    )
    if scope.filters.collections is not None:
        query = query.where(Collection.id.in_(scope.filters.collections))
    if scope.picks_documents:
        query = query.where(number > 0)
    return [ShownCollection(*row) for row in session.execute(query, scope.parameters())]


def list_documents(session: Session, scope: Scope) -> list[ShownDocument]:
    """Every document in scope, by address."""
    has_text = Document.text.is_not(None) & (Document.status != "failed") & _has_chunks()
    query = (
        select(
            Document.id,
            Collection.slug,
            Document.path,
            Document.title,
            Document.bytes,
            Document.status,
            Document.error,
            has_text,
        )
        .join(Collection, Collection.id == Document.collection_id)
        .where(*in_scope())
        .order_by(Collection.slug, Document.path, Document.id)
    )
    return [ShownDocument(*row) for row in session.execute(query, scope.parameters())]


def last_lines(session: Session, scope: Scope, document_ids: Sequence[int]) -> Mapping[int, int]:
    """By id the last line of each document that holds anything."""
    last = (
        select(Chunk.line_end)
        .where(Chunk.document_id == Document.id)
        .order_by(Chunk.ordinal.desc())
        .limit(1)
        .correlate(Document)
        .scalar_subquery()
    )
    query = select(Document.id, last).where(Document.id.in_(document_ids), _has_chunks(), *in_scope())
    rows = session.execute(query, scope.parameters())
    return {document_id: line for document_id, line in rows}  # noqa: C416 - rows are no pairs to dict()


def texts_of(session: Session, scope: Scope, document_ids: Sequence[int]) -> Mapping[int, str]:
    """By id the canonical text of each of the documents that has one."""
    query = select(Document.id, Document.text).where(
        Document.id.in_(document_ids), Document.text.is_not(None), Document.status != "failed", *in_scope()
    )
    return {document_id: text for document_id, text in session.execute(query, scope.parameters()) if text is not None}


def chunk_at(session: Session, scope: Scope, document_id: int, char_start: int) -> ChunkPlace | None:
    """The first chunk that ends behind `char_start`, the last one where none does; None without chunks in scope."""
    chunks = select(Chunk.id, Chunk.heading, Chunk.page).where(
        Chunk.document_id == document_id, Chunk.document_id.in_(select(Document.id).where(*in_scope()))
    )
    there = chunks.where(Chunk.char_end > char_start).order_by(Chunk.ordinal).limit(1)
    row = session.execute(there, scope.parameters()).first()
    row = row or session.execute(chunks.order_by(Chunk.ordinal.desc()).limit(1), scope.parameters()).first()
    return ChunkPlace(*row) if row is not None else None


def count_searchable(session: Session, scope: Scope) -> int:
    """How many documents in scope can be searched, by words at least."""
    query = select(func.count()).where(*in_scope(), Document.status.in_(("embedding", "ready")), _has_chunks())
    return int(session.execute(query, scope.parameters()).scalar_one())


def _has_chunks() -> ColumnElement[bool]:
    return exists().where(Chunk.document_id == Document.id)
