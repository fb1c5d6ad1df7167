"""Collections, documents, their chunks, and the jobs that make them searchable.

Ids of documents, chunks and jobs are never used twice (`sqlite_autoincrement`): stored answers point at the first two,
and a worker may still hold a job that was deleted.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class Collection(Base):
    """A named set of documents: `Library` for uploads, one per watched folder, one for the sample."""

    __tablename__ = "collections"

    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    slug: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(20))
    """`library` (uploads), `folder` (watched) or `sample` (Docent's own manual)."""
    root: Mapped[str | None] = mapped_column(Text)
    """The folder's absolute path, for `folder` and `sample`."""
    scanned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    include: Mapped[list[str] | None] = mapped_column(JSON)
    """Patterns of what a folder's files have to be; None or empty: anything."""
    exclude: Mapped[list[str] | None] = mapped_column(JSON)
    """Patterns of what is left out."""
    watch: Mapped[str | None] = mapped_column(String(20))
    """How changes become known: `watching`, `remote`, `limit` or `missing`; None before a worker looked."""
    changed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    change: Mapped[dict[str, int] | None] = mapped_column(JSON)
    """What the newest scan that found a difference did: added, changed, renamed, removed."""
    removing_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when its documents are being taken out: nobody sees them any more."""


class CollectionMember(Base):
    """Who besides the owner may read (or write) a collection."""

    __tablename__ = "collection_members"

    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    can_write: Mapped[bool]


class Document(Base):
    """One file and its canonical text. `deleted_at` marks a tombstone: a folder's file the user took out."""

    __tablename__ = "documents"
    __table_args__ = (
        Index(
            "uq_documents_live_path",
            "collection_id",
            "source",
            "path",
            unique=True,
            sqlite_where=text("deleted_at IS NULL"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index("ix_documents_status", "status"),
        Index("ix_documents_sha256", "sha256"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    source: Mapped[str] = mapped_column(String(10))
    """`upload`, `folder`, or `url` (fetched; its address stands in `web_pages`)."""
    path: Mapped[str] = mapped_column(Text)
    title: Mapped[str] = mapped_column(Text)
    mime: Mapped[str] = mapped_column(String(100))
    sha256: Mapped[str] = mapped_column(String(64))
    bytes: Mapped[int] = mapped_column(BigInteger)
    mtime_ns: Mapped[int | None] = mapped_column(BigInteger)
    encoding: Mapped[str | None] = mapped_column(String(40))
    """What the text was read as; of a fetched page that was not read yet, what its server calls it. None for what is no
    text."""
    pages: Mapped[int | None]
    text_yield: Mapped[list[int] | None] = mapped_column(JSON)
    """Characters per page, in page order; None for formats without pages."""
    status: Mapped[str] = mapped_column(String(10))
    """queued, parsing, embedding (searchable by words), ready, failed."""
    error: Mapped[str | None] = mapped_column(String(40))
    """A reason of documents.md §1: empty, no_text, encrypted, corrupt, unsupported, too_large, timeout, …"""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    indexed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    deleted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    text: Mapped[str | None] = mapped_column(Text)
    """The canonical text. Last on purpose: SQLite reads through a long value to reach the columns behind it."""


class Chunk(Base):
    """A passage: `text == document.text[char_start:char_end]`, lines 1-based and inclusive."""

    __tablename__ = "chunks"
    __table_args__ = (
        UniqueConstraint("document_id", "ordinal"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    ordinal: Mapped[int]
    heading: Mapped[str] = mapped_column(Text)
    """The heading path, outermost first, joined by " › "; empty where there is none."""
    text: Mapped[str] = mapped_column(Text)
    char_start: Mapped[int]
    char_end: Mapped[int]
    page: Mapped[int | None]
    line_start: Mapped[int]
    line_end: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    """Of the text as embedded (title, heading path, text): the key into `vectors`."""


class Job(Base):
    """A unit of background work with a lease. At most one live job per `dedup_key`."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index(
            "uq_jobs_live_dedup_key",
            "dedup_key",
            unique=True,
            sqlite_where=text("state IN ('queued', 'running')"),
            postgresql_where=text("state IN ('queued', 'running')"),
        ),
        Index("ix_jobs_state_kind", "state", "kind", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    """`ingest` (extract and chunk one document), `embed` (its vectors), `ocr` (pictures in it), `fetch` (the page
    at its address), `scan` (one folder), `remove` (one collection)."""
    document_id: Mapped[int | None] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), index=True)
    dedup_key: Mapped[str] = mapped_column(String(200))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(10))
    """queued, running, done, failed."""
    attempts: Mapped[int]
    not_before: Mapped[datetime | None] = mapped_column(UtcDateTime)
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    heartbeat_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    fence: Mapped[int]
    """Grows with each claim; a finish with an older fence is refused."""
    error: Mapped[str | None] = mapped_column(String(40))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
