"""Documents that were fetched: their addresses, what the server said, when to ask again.

Owns the web_pages table. Pages read with the owner check; the worker's functions (`find_item`, `note_…`, `queue_due`)
ask for no owner, and those that change what a user named come after `documents.check_writable`. The document's own row
is `app.store.intake`'s, fetching `app.ingest.fetch_work`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal, cast

from sqlalchemy import exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.store import jobs
from app.store.collections import readable_ids, writable_ids
from app.store.models.library import Document, Job
from app.store.models.web_pages import WebPage

Refresh = Literal["off", "daily", "weekly"]

INTERVALS: Mapping[str, timedelta] = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class PageRow:
    """What is known of a fetched document's page; `is_checking` while a fetch is queued or going on."""

    document_id: int
    url: str
    final_url: str | None
    fetched_at: datetime | None
    checked_at: datetime | None
    refresh: Refresh
    next_check_at: datetime | None
    gone_at: datetime | None
    error: str | None
    is_checking: bool


@dataclass(frozen=True, slots=True)
class FetchItem:
    """A page as the worker needs it. `sha256` is empty before any bytes came; `is_readable` says whether a text made of
    them is there."""

    document_id: int
    collection_id: int
    url: str
    final_url: str | None
    etag: str | None
    last_modified: str | None
    sha256: str
    status: str
    is_readable: bool
    encoding: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """What a server said of the bytes that are here: where they came from in the end, and its validators."""

    final_url: str
    etag: str | None
    last_modified: str | None


def add_pages(session: Session, urls: Mapping[int, str]) -> None:
    """Gives new documents their addresses, by document id."""
    rows = [{"document_id": number, "url": url, "refresh": "off"} for number, url in urls.items()]
    if rows:
        session.execute(insert(WebPage), rows)


def get_pages(session: Session, user_id: int, document_ids: Sequence[int]) -> dict[int, PageRow]:
    """The pages among these documents that the user may read, by document id."""
    readable = select(Document.id).where(
        Document.id.in_(document_ids),
        Document.deleted_at.is_(None),
        Document.collection_id.in_(readable_ids(user_id)),
    )
    return rows_of(session, list(session.scalars(readable)))


def rows_of(session: Session, document_ids: Sequence[int]) -> dict[int, PageRow]:
    """The pages among these documents, by document id; the caller may read them."""
    checking = exists().where(Job.document_id == WebPage.document_id, Job.kind == "fetch", Job.state.in_(jobs.LIVE))
    query = select(WebPage, checking.label("is_checking")).where(WebPage.document_id.in_(document_ids))
    return {
        page.document_id: PageRow(
            document_id=page.document_id,
            url=page.url,
            final_url=page.final_url,
            fetched_at=page.fetched_at,
            checked_at=page.checked_at,
            refresh=cast("Refresh", page.refresh),
            next_check_at=page.next_check_at,
            gone_at=page.gone_at,
            error=page.error,
            is_checking=is_checking,
        )
        for page, is_checking in session.execute(query)
    }


def writable_pages(session: Session, user_id: int) -> list[int]:
    """The documents with an address that the user may change, oldest first."""
    query = (
        select(WebPage.document_id)
        .join(Document, Document.id == WebPage.document_id)
        .where(Document.deleted_at.is_(None), Document.collection_id.in_(writable_ids(user_id)))
        .order_by(WebPage.document_id)
    )
    return list(session.scalars(query))


def count_pages(session: Session, user_id: int) -> int:
    """How many documents with an address the user may read."""
    query = (
        select(func.count())
        .select_from(WebPage)
        .join(Document, Document.id == WebPage.document_id)
        .where(Document.deleted_at.is_(None), Document.collection_id.in_(readable_ids(user_id)))
    )
    return session.scalar(query) or 0


def find_item(session: Session, document_id: int) -> FetchItem | None:
    """A living document's page, for the worker."""
    query = (
        select(
            WebPage,
            Document.collection_id,
            Document.sha256,
            Document.status,
            Document.indexed_at,
            Document.encoding,
        )
        .join(Document, Document.id == WebPage.document_id)
        .where(WebPage.document_id == document_id, Document.deleted_at.is_(None))
    )
    row = session.execute(query).first()
    if row is None:
        return None
    page = row.WebPage
    return FetchItem(
        document_id=document_id,
        collection_id=row.collection_id,
        url=page.url,
        final_url=page.final_url,
        etag=page.etag,
        last_modified=page.last_modified,
        sha256=row.sha256,
        status=row.status,
        is_readable=row.indexed_at is not None,
        encoding=row.encoding,
    )


def note_fetched(session: Session, document_id: int, said: Said, now: datetime) -> None:
    """Other bytes came."""
    _note(session, document_id, now, {**asdict(said), "fetched_at": now})


def note_same(session: Session, document_id: int, said: Said, now: datetime) -> None:
    """The server was asked, and what is here is what it has: still unread, where it could not be read."""
    page = session.get(WebPage, document_id)
    unread = page.error if page is not None and page.error and not page.error.startswith("fetch_") else None
    _note(session, document_id, now, asdict(said))
    if unread:
        note_unread(session, document_id, unread)


def note_unread(session: Session, document_id: int, reason: str) -> None:
    """What came could not be read, for a reason of `app.ingest.errors`; the text of what came before is kept."""
    session.execute(update(WebPage).where(WebPage.document_id == document_id).values(error=reason))


def note_trying(session: Session, document_id: int, reason: str) -> None:
    """A try failed, and another one follows."""
    session.execute(update(WebPage).where(WebPage.document_id == document_id).values(error=reason))


def note_failed(session: Session, document_id: int, reason: str, now: datetime, *, is_gone: bool = False) -> None:
    """A try failed. What is here stays; `is_gone`: the server says that there is no such page."""
    page = session.get(WebPage, document_id)
    if page is None:
        return
    page.error = reason
    page.next_check_at = _next(page.refresh, now)
    if is_gone:
        page.gone_at = page.gone_at or now
        page.checked_at = now


def set_refresh(session: Session, document_id: int, refresh: Refresh, now: datetime) -> bool:
    """How often the server is asked from now on. False for a document without an address."""
    page = session.get(WebPage, document_id)
    if page is None:
        return False
    page.refresh = refresh
    page.next_check_at = _next(refresh, page.checked_at or now)
    return True


def has_due(session: Session, now: datetime) -> bool:
    """Whether a page is due to be looked at."""
    return bool(session.scalar(select(exists().where(WebPage.next_check_at <= now))))


def queue_due(session: Session, now: datetime) -> int:
    """Queues a fetch of every page that is due; returns of how many."""
    query = (
        select(WebPage.document_id, WebPage.refresh)
        .join(Document, Document.id == WebPage.document_id)
        .where(WebPage.next_check_at <= now, Document.deleted_at.is_(None))
    )
    due = {row.document_id: row.refresh for row in session.execute(query)}
    for document_id, refresh in due.items():
        session.execute(
            update(WebPage).where(WebPage.document_id == document_id).values(next_check_at=_next(refresh, now))
        )
    return jobs.enqueue(session, [jobs.fetch_job(document_id) for document_id in due], now)


def _note(session: Session, document_id: int, now: datetime, values: Mapping[str, object]) -> None:
    page = session.get(WebPage, document_id)
    if page is None:
        return
    for name, value in {**values, "checked_at": now, "gone_at": None, "error": None}.items():
        setattr(page, name, value)
    page.next_check_at = _next(page.refresh, now)


def _next(refresh: str, since: datetime) -> datetime | None:
    interval = INTERVALS.get(refresh)
    return None if interval is None else since + interval
