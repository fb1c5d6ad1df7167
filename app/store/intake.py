"""Document rows as ingest changes them: found, queued, read, embedded, failed, taken out.

Owns the writing side of the documents table. It asks for no owner: callers (`app.ingest`) either checked the collection
first (`collections.get_collection(…, to_change=True)`, `documents.check_writable`) or are the worker. Chunks, full
text, vectors and files are changed beside it by `app.ingest`, in the same transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import and_, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.store.models.library import Chunk, Collection, Document
from app.store.models.vectors import Vector

Source = Literal["upload", "folder", "url"]


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A file that gets a row. `mtime_ns` is None for all but a folder's, `sha256` empty for a page that is still to be
    fetched."""

    collection_id: int
    source: Source
    path: str
    sha256: str
    bytes: int
    mtime_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the database knows of a file: enough to tell whether it changed, or was only away when last read."""

    id: int
    path: str
    sha256: str
    bytes: int
    mtime_ns: int | None
    status: str
    is_removed: bool
    was_missed: bool = False


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A document as the worker needs it. `root` is its folder, None for uploads; `charset` is how a fetched page is
    encoded, as its server said or as it was read before."""

    id: int
    collection_id: int
    source: Source
    path: str
    root: str | None
    sha256: str
    bytes: int
    charset: str | None = None


_KNOWN = (
    Document.id,
    Document.path,
    Document.sha256,
    Document.bytes,
    Document.mtime_ns,
    Document.status,
    Document.error,
    Document.deleted_at,
)


def find_files(session: Session, collection_id: int, source: Source, paths: Sequence[str]) -> dict[str, KnownFile]:
    """The living rows of those paths, by path."""
    query = select(*_KNOWN).where(
        Document.collection_id == collection_id,
        Document.source == source,
        Document.path.in_(paths),
        Document.deleted_at.is_(None),
    )
    return {row.path: _known(row) for row in session.execute(query)}


def list_files(session: Session, collection_id: int) -> list[KnownFile]:
    """Every row of a folder's collection, tombstones included."""
    query = select(*_KNOWN).where(Document.collection_id == collection_id)
    return [_known(row) for row in session.execute(query)]


def list_files_in(session: Session, collection_id: int, folders: Sequence[str]) -> list[KnownFile]:
    """The rows of the files that lie in these folders (each with a final "/"; the root is ""), not below them."""
    rows: list[KnownFile] = []
    for folder in folders:
        query = select(*_KNOWN).where(
            Document.collection_id == collection_id,
            Document.path >= folder,
            func.instr(func.substr(Document.path, len(folder) + 1), "/") == 0,
        )
        if folder:
            query = query.where(Document.path < f"{folder[:-1]}0")
        rows += [_known(row) for row in session.execute(query)]
    return rows


def add_documents(session: Session, new: Sequence[NewDocument], now: datetime) -> list[int]:
    """Makes rows in state `queued` and returns their ids, in order."""
    rows = [
        {
            "collection_id": document.collection_id,
            "source": document.source,
            "path": document.path,
            "title": "",
            "mime": "",
            "sha256": document.sha256,
            "bytes": document.bytes,
            "mtime_ns": document.mtime_ns,
            "status": "queued",
            "created_at": now,
            "updated_at": now,
        }
        for document in new
    ]
    if not rows:
        return []
    return list(session.scalars(insert(Document).returning(Document.id, sort_by_parameter_order=True), rows))


def requeue(session: Session, document_id: int, now: datetime, **changes: Any) -> None:
    """Sends a document through ingest again; `changes` are new values of sha256, bytes, mtime_ns, encoding. A tombstone
    lives again. What it held stays findable until the new text replaces it."""
    values = {"status": "queued", "error": None, "deleted_at": None, "updated_at": now, **changes}
    session.execute(update(Document).where(Document.id == document_id).values(values))


def note_file(session: Session, document_id: int, **changes: Any) -> None:
    """Corrects path or mtime_ns of a document whose content is the same."""
    session.execute(update(Document).where(Document.id == document_id).values(changes))


def work_items(session: Session, document_ids: Sequence[int]) -> dict[int, WorkItem]:
    """The living documents among `document_ids`, by id."""
    query = (
        select(
            Document.id,
            Document.collection_id,
            Document.source,
            Document.path,
            Document.sha256,
            Document.bytes,
            Document.encoding,
            Collection.root,
        )
        .join(Collection, Collection.id == Document.collection_id)
        .where(Document.id.in_(document_ids), Document.deleted_at.is_(None))
    )
    return {
        row.id: WorkItem(
            id=row.id,
            collection_id=row.collection_id,
            source=row.source,
            path=row.path,
            root=row.root,
            sha256=row.sha256,
            bytes=row.bytes,
            charset=row.encoding if row.source == "url" else None,
        )
        for row in session.execute(query)
    }


def mark_parsing(session: Session, document_ids: Sequence[int]) -> None:
    """The worker took them."""
    session.execute(update(Document).where(Document.id.in_(document_ids)).values(status="parsing"))


def mark_queued(session: Session, document_ids: Sequence[int]) -> None:
    """The worker gave them back."""
    query = update(Document).where(Document.id.in_(document_ids), Document.status == "parsing")
    session.execute(query.values(status="queued"))


def mark_all_queued(session: Session) -> None:
    """At start, when no worker lives: nothing is being read."""
    session.execute(update(Document).where(Document.status == "parsing").values(status="queued"))


def send_back_all(session: Session) -> list[tuple[int, str]]:
    """Lets every searchable document wait to be read anew, findable by what it holds meanwhile; their (id, sha256)."""
    searchable = (Document.status.in_(("embedding", "ready")), Document.deleted_at.is_(None))
    rows = session.execute(select(Document.id, Document.sha256).where(*searchable)).all()
    session.execute(update(Document).where(*searchable).values(status="queued", error=None))
    return [(row.id, row.sha256) for row in rows]


def mark_read(session: Session, document_id: int, values: Mapping[str, Any], now: datetime) -> None:
    """`mark_all_read` for one document."""
    mark_all_read(session, {document_id: values}, now)


def mark_all_read(session: Session, read: Mapping[int, Mapping[str, Any]], now: datetime) -> None:
    """Stores what extraction gave (title, mime, encoding, pages, text, text_yield, sha256, bytes), by document id.

    These are `embedding` now, findable by words once their passages are in. Each must name the same values."""
    state = {"status": "embedding", "error": None, "indexed_at": now, "updated_at": now}
    rows = [{"id": document_id, **values, **state} for document_id, values in read.items()]
    if rows:
        session.execute(update(Document), rows)


def mark_ready(session: Session, document_ids: Sequence[int], generation_id: int) -> set[int]:
    """Turns those `ready` that have every vector of the generation; returns those still `embedding`: their text was
    replaced meanwhile. Documents in another state are left alone."""
    missing = exists().where(
        Chunk.document_id == Document.id,
        ~exists().where(Vector.generation_id == generation_id, Vector.sha256 == Chunk.sha256),
    )
    embedding = (Document.id.in_(document_ids), Document.status == "embedding")
    session.execute(update(Document).where(*embedding, ~missing).values(status="ready", error=None))
    return set(session.scalars(select(Document.id).where(*embedding)))


def mark_embedding(session: Session, document_ids: Sequence[int], error: str | None = None) -> list[int]:
    """Searchable by words, vectors still to come; `error` says why they wait. The ids of those that are (still) so."""
    query = update(Document).where(Document.id.in_(document_ids), Document.status.in_(("embedding", "ready")))
    return list(session.scalars(query.values(status="embedding", error=error).returning(Document.id)))


def keep_text(session: Session, document_id: int) -> None:
    """A new version could not be read: the text of the one before goes on being found."""
    session.execute(update(Document).where(Document.id == document_id).values(status="embedding", error=None))


def mark_failed(session: Session, document_id: int, reason: str, now: datetime, **values: Any) -> None:
    """Ends a document's way for now; its text is gone, the file is kept."""
    changes = {"status": "failed", "error": reason, "text": None, "text_yield": None, "indexed_at": None}
    session.execute(update(Document).where(Document.id == document_id).values({**changes, "updated_at": now, **values}))


def bury(session: Session, document_id: int, now: datetime) -> None:
    """Makes a folder's document a tombstone: gone for everyone, remembered so that a scan does not bring it back."""
    values = {"deleted_at": now, "updated_at": now, "text": None, "text_yield": None, "indexed_at": None}
    session.execute(update(Document).where(Document.id == document_id).values(values))


def drop_documents(session: Session, document_ids: Sequence[int]) -> None:
    """Deletes rows. Their passages must be gone already."""
    session.execute(delete(Document).where(Document.id.in_(document_ids)))


def ids_in_collection(session: Session, collection_id: int) -> list[int]:
    """Every document of a collection, tombstones included."""
    return list(session.scalars(select(Document.id).where(Document.collection_id == collection_id)))


def some_in_collection(session: Session, collection_id: int, limit: int) -> list[int]:
    """At most `limit` documents of a collection, tombstones included."""
    query = select(Document.id).where(Document.collection_id == collection_id).order_by(Document.id).limit(limit)
    return list(session.scalars(query))


def upload_shas(session: Session) -> set[str]:
    """The content hashes that living uploads and fetched pages need a stored file of."""
    stored = (Document.source != "folder", Document.sha256 != "", Document.deleted_at.is_(None))
    query = select(Document.sha256).where(*stored).distinct()
    return set(session.scalars(query))


def is_sha_used(session: Session, sha256: str) -> bool:
    """Whether a living upload or fetched page needs the stored file of that hash."""
    query = exists().where(and_(Document.sha256 == sha256, Document.source != "folder", Document.deleted_at.is_(None)))
    return bool(session.scalar(select(query)))


def waiting_for_vectors(session: Session) -> list[int]:
    """Documents in `embedding`."""
    return list(session.scalars(select(Document.id).where(Document.status == "embedding")))


def unfinished(session: Session) -> list[tuple[int, str, str]]:
    """(id, sha256, source) of living documents that are queued or being parsed."""
    query = select(Document.id, Document.sha256, Document.source).where(
        Document.status.in_(("queued", "parsing")), Document.deleted_at.is_(None)
    )
    return [(row.id, row.sha256, row.source) for row in session.execute(query)]


def _known(row: Any) -> KnownFile:
    return KnownFile(
        id=row.id,
        path=row.path,
        sha256=row.sha256,
        bytes=row.bytes,
        mtime_ns=row.mtime_ns,
        status=row.status,
        is_removed=row.deleted_at is not None,
        was_missed=row.deleted_at is None and row.status == "failed" and row.error in ("vanished", "unreadable"),
    )
