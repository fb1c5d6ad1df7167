"""Documents as pages and API read them: rows, lists, counts, progress.

Every function takes the user's id and checks in SQL that the document's collection is theirs to read. Writing is
`app.store.intake`'s (the ingest pipeline), passages are `app.store.chunks`'.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from sqlalchemy import ColumnElement, Row, Select, String, and_, exists, func, or_, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from app.errors import InvalidInputError, NotFoundError
from app.store.collections import readable_ids, writable_ids
from app.store.models.library import Chunk, Collection, Document
from app.store.models.vectors import Generation, Vector
from app.store.readings import count_unread

Status = Literal["queued", "parsing", "embedding", "ready", "failed"]
StatusFilter = Literal["queued", "parsing", "embedding", "ready", "failed", "look"]
"""`look` is what needs a look: failed, or with pages that hold no text."""

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One file as a list shows it.

    `title` is the content's, or the file's name where the content names none. `embedded` of `chunks` passages have a
    vector in the active generation. `error` is a reason (`encrypted`), for `failed`; while `embedding` it says why the
    vectors wait (`embed_unavailable`). `empty_pages` are the 1-based pages without text.
    """

    id: int
    collection_id: int
    collection: str
    source: str
    path: str
    title: str
    mime: str
    sha256: str
    bytes: int
    encoding: str | None
    pages: int | None
    empty_pages: tuple[int, ...]
    status: Status
    error: str | None
    chunks: int
    embedded: int
    created_at: datetime
    updated_at: datetime
    indexed_at: datetime | None

    @property
    def needs_look(self) -> bool:
        """Whether the row belongs on top of the list."""
        return self.status == "failed" or bool(self.empty_pages)


@dataclass(frozen=True, slots=True)
class DocumentDetail:
    """A row with its canonical text, None until it was read."""

    row: DocumentRow
    text: str | None


@dataclass(frozen=True, slots=True)
class DocumentFilters:
    """`q` is a part of the path or title, in any case; None means no condition."""

    q: str | None = None
    status: StatusFilter | None = None
    collection: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a list; `next` is the `after` of the following one, None on the last."""

    rows: list[DocumentRow]
    next: str | None


@dataclass(frozen=True, slots=True)
class Counts:
    """What the user may read: documents, those of them that hold text, passages, documents that need a look, documents
    by status."""

    documents: int
    read: int
    passages: int
    look: int
    by_status: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the library is since `since`: documents waiting (queued, parsing), searchable by words (embedding), ready
    and failed since then; passages and how many of them are embedded, of the documents in `embedding`."""

    waiting: int
    embedding: int
    ready: int
    failed: int
    passages: int
    embedded: int


def list_documents(
    session: Session, user_id: int, filters: DocumentFilters, *, limit: int = PAGE_SIZE, after: str | None = None
) -> DocumentPage:
    """What needs a look first, then the newest first; `after` continues behind the page that named it.

    Raises:
        InvalidInputError: for an `after` that no page gave.
    """
    look, last_id = (True, None) if after is None else _cursor(after)
    query = _select().where(*_conditions(user_id, filters)).order_by(Document.id.desc())
    rows: list[DocumentRow] = []
    # Two queries, each in the order of ids: one of both kinds would sort the whole library for its first page.
    for kind in (True, False) if look else (False,):
        some = query.where(_needs_look() if kind else ~_needs_look())
        if last_id is not None and kind == look:
            some = some.where(Document.id < last_id)
        rows += [_row(found) for found in session.execute(some.limit(limit + 1 - len(rows)))]
    if len(rows) <= limit:
        return DocumentPage(rows, None)
    last = rows[limit - 1]
    return DocumentPage(rows[:limit], f"{int(last.needs_look)}-{last.id}")


def count_matching(session: Session, user_id: int, filters: DocumentFilters) -> int:
    """How many documents `list_documents` would give in all."""
    query = select(func.count()).select_from(Document).where(*_conditions(user_id, filters))
    return session.scalar(query) or 0


def get_document(session: Session, user_id: int, document_id: int) -> DocumentDetail:
    """One document with its text.

    Raises:
        NotFoundError: when it does not exist, was taken out, or is not the user's.
    """
    query = _select().add_columns(Document.text).where(Document.id == document_id, _is_readable(user_id))
    found = session.execute(query).first()
    if found is None:
        raise NotFoundError
    return DocumentDetail(_row(found), found.text)


def get_rows(session: Session, user_id: int, document_ids: list[int]) -> list[DocumentRow]:
    """Those of the documents that the user may read, in the order given."""
    query = _select().where(Document.id.in_(document_ids), _is_readable(user_id))
    rows = {found.id: _row(found) for found in session.execute(query)}
    return [rows[document_id] for document_id in document_ids if document_id in rows]


def check_writable(session: Session, user_id: int, document_id: int) -> None:
    """Raises:
    NotFoundError: unless the document lives in a collection the user may change.
    """
    writable = Document.collection_id.in_(writable_ids(user_id))
    if not session.scalar(select(exists().where(Document.id == document_id, Document.deleted_at.is_(None), writable))):
        raise NotFoundError


def searchable_paths(session: Session, user_id: int) -> list[str]:
    """The paths of the documents that a search looks at."""
    query = select(Document.path).where(_is_readable(user_id), Document.status != "failed").order_by(Document.id)
    return list(session.scalars(query))


def counts(session: Session, user_id: int) -> Counts:
    """The numbers of headers and foot lines."""
    query = select(Document.status, func.count()).where(_is_readable(user_id)).group_by(Document.status)
    by_status = {status: number for status, number in session.execute(query)}  # noqa: C416 - rows are no pairs to dict()
    passages = session.scalar(
        select(func.count())
        .select_from(Chunk)
        .join(Document, Document.id == Chunk.document_id)
        .where(_is_readable(user_id))
    )
    look = count_matching(session, user_id, DocumentFilters(status="look"))
    total = sum(by_status.values())
    return Counts(total, total - count_unread(session, user_id), passages or 0, look, by_status)


def progress(session: Session, user_id: int, since: datetime) -> Progress:
    """The state of the batch that began at `since`."""

    def number(*conditions: ColumnElement[bool]) -> int:
        return session.scalar(select(func.count()).select_from(Document).where(_is_readable(user_id), *conditions)) or 0

    embedding = and_(_is_readable(user_id), Document.status == "embedding")
    passages, embedded = session.execute(
        select(func.count(), func.count(Vector.id))
        .select_from(Chunk)
        .join(Document, Document.id == Chunk.document_id)
        .outerjoin(Generation, Generation.state == "active")
        .outerjoin(Vector, and_(Vector.generation_id == Generation.id, Vector.sha256 == Chunk.sha256))
        .where(embedding)
    ).one()
    return Progress(
        waiting=number(Document.status.in_(("queued", "parsing"))),
        embedding=number(Document.status == "embedding"),
        ready=number(Document.status == "ready", Document.indexed_at >= since),
        failed=number(Document.status == "failed", Document.updated_at >= since),
        passages=passages,
        embedded=embedded,
    )


def _select() -> Select[*tuple[Any, ...]]:
    chunks = select(func.count()).where(Chunk.document_id == Document.id).correlate(Document).scalar_subquery()
    embedded = (
        select(func.count())
        .select_from(Chunk)
        .join(Generation, Generation.state == "active")
        .join(Vector, and_(Vector.generation_id == Generation.id, Vector.sha256 == Chunk.sha256))
        .where(Chunk.document_id == Document.id, Document.status == "embedding")
        .correlate(Document)
        .scalar_subquery()
    )
    columns = (
        getattr(Document, name)
        for name in (
            *("id", "collection_id", "source", "path", "title", "mime", "sha256", "bytes", "encoding", "pages"),
            *("text_yield", "status", "error", "created_at", "updated_at", "indexed_at"),
        )
    )
    return select(
        *columns, Collection.name.label("collection"), chunks.label("chunks"), embedded.label("embedded")
    ).join(Collection, Collection.id == Document.collection_id)


def _row(found: Row[Any]) -> DocumentRow:
    text_yield = cast("list[int] | None", found.text_yield)
    return DocumentRow(
        id=found.id,
        collection_id=found.collection_id,
        collection=found.collection,
        source=found.source,
        path=found.path,
        title=found.title or found.path.rsplit("/", 1)[-1],
        mime=found.mime,
        sha256=found.sha256,
        bytes=found.bytes,
        encoding=found.encoding,
        pages=found.pages,
        empty_pages=tuple(number for number, chars in enumerate(text_yield or (), 1) if not chars),
        status=found.status,
        error=found.error,
        chunks=found.chunks,
        embedded=found.chunks if found.status == "ready" else found.embedded,
        created_at=found.created_at,
        updated_at=found.updated_at,
        indexed_at=found.indexed_at,
    )


def _conditions(user_id: int, filters: DocumentFilters) -> list[ColumnElement[bool]]:
    conditions = [_is_readable(user_id)]
    if filters.q:
        conditions.append(
            or_(
                Document.path.icontains(filters.q, autoescape=True),
                Document.title.icontains(filters.q, autoescape=True),
            )
        )
    if filters.status == "look":
        conditions.append(_needs_look())
    elif filters.status is not None:
        conditions.append(Document.status == filters.status)
    if filters.collection is not None:
        conditions.append(Document.collection_id == filters.collection)
    return conditions


def _is_readable(user_id: int) -> ColumnElement[bool]:
    return and_(Document.deleted_at.is_(None), Document.collection_id.in_(readable_ids(user_id)))


def _needs_look() -> ColumnElement[bool]:
    """Failed, or a zero among the JSON list of characters per page (`[0, 12]`); never NULL."""
    counted = func.coalesce(sql_cast(Document.text_yield, String), "")
    empty_page = or_(*(counted.like(pattern) for pattern in ("[0]", "[0, %", "%, 0, %", "%, 0]")))
    return or_(Document.status == "failed", empty_page)


def _cursor(after: str) -> tuple[bool, int]:
    match = re.fullmatch(r"([01])-(\d{1,18})", after)
    if match is None:
        raise InvalidInputError
    return match[1] == "1", int(match[2])
