"""Collections: `Library` for uploads, one per watched folder, one for the sample.

Owns who may see and change which collection, as conditions in SQL that every other repository uses. It reads no disk:
`app.ingest.sources` does.
"""

import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from sqlalchemy import ColumnElement, Select, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.store.models.library import Collection, CollectionMember, Document

CollectionKind = Literal["library", "folder", "sample"]
WatchState = Literal["watching", "remote", "limit", "missing"]
"""How a folder's changes become known: at once; at once unless another machine made them; by the clock, because the
system watches no more folders; not at all, because it is not there."""


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A collection as pages and API show it. `root` is the folder's absolute path; `documents` counts living ones.
    `change` is what the newest scan that found a difference did, at `changed_at`."""

    id: int
    name: str
    slug: str
    kind: CollectionKind
    root: str | None
    documents: int
    scanned_at: datetime | None
    created_at: datetime
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    watch: WatchState | None = None
    changed_at: datetime | None = None
    change: Mapping[str, int] | None = None
    removing: bool = False


def readable_ids(user_id: int) -> Select[int]:
    """The ids of the collections `user_id` may read, for `.in_(…)`; none that is being removed."""
    member = exists().where(CollectionMember.collection_id == Collection.id, CollectionMember.user_id == user_id)
    return select(Collection.id).where(Collection.removing_at.is_(None), or_(Collection.owner_id == user_id, member))


def writable_ids(user_id: int) -> Select[int]:
    """The ids of the collections `user_id` may change, for `.in_(…)`; none that is being removed."""
    member = exists().where(
        CollectionMember.collection_id == Collection.id,
        CollectionMember.user_id == user_id,
        CollectionMember.can_write,
    )
    return select(Collection.id).where(Collection.removing_at.is_(None), or_(Collection.owner_id == user_id, member))


def list_collections(session: Session, user_id: int) -> list[CollectionRow]:
    """What the user may read: the library first, then folders by name, the sample last."""
    rows = _rows(session, Collection.id.in_(readable_ids(user_id)))
    order = {"library": 0, "folder": 1, "sample": 2}
    return sorted(rows, key=lambda row: (order[row.kind], row.name.casefold(), row.id))


def list_scanned(session: Session) -> list[CollectionRow]:
    """Every collection that has a folder, whoever owns it: for the worker, never for a page."""
    return _rows(session, Collection.root.is_not(None) & Collection.removing_at.is_(None))


def list_removing(session: Session, owner_id: int | None = None) -> list[CollectionRow]:
    """The owner's (None: everyone's) collections that are being removed; `documents` counts what is left, tombstones
    aside."""
    theirs = Collection.removing_at.is_not(None)
    return _rows(session, theirs if owner_id is None else theirs & (Collection.owner_id == owner_id))


def list_watched(session: Session) -> list[tuple[int, str]]:
    """(id, root) of every folder that is to be watched, whoever owns it: for the worker, never for a page."""
    rows = session.execute(
        select(Collection.id, Collection.root)
        .where(Collection.kind == "folder", Collection.removing_at.is_(None))
        .order_by(Collection.id)
    )
    return [(row.id, cast("str", row.root)) for row in rows]


def stamp(session: Session, user_id: int) -> str:
    """A short text that differs once a scan changed something in what the user may read, or a folder came, went, or is
    watched in another way."""
    query = select(Collection.id, Collection.changed_at, Collection.watch, Collection.removing_at)
    member = exists().where(CollectionMember.collection_id == Collection.id, CollectionMember.user_id == user_id)
    rows = session.execute(query.where(or_(Collection.owner_id == user_id, member)).order_by(Collection.id))
    return f"{zlib.crc32(repr([tuple(row) for row in rows]).encode()):08x}"


def get_collection(session: Session, user_id: int, collection_id: int, *, to_change: bool = False) -> CollectionRow:
    """One collection the user may read, or change.

    Raises:
        NotFoundError: when it does not exist or is not theirs.
    """
    ids = writable_ids(user_id) if to_change else readable_ids(user_id)
    rows = _rows(session, (Collection.id == collection_id) & Collection.id.in_(ids))
    if not rows:
        raise NotFoundError
    return rows[0]


def find_collection(session: Session, collection_id: int) -> CollectionRow | None:
    """One collection, whoever owns it, unless it is being removed: for the worker, never for a page."""
    return next(iter(_rows(session, (Collection.id == collection_id) & Collection.removing_at.is_(None))), None)


def library_id(session: Session, user_id: int, now: datetime) -> int:
    """The collection of the user's uploads, made when there is none."""
    found = session.scalar(
        select(Collection.id)
        .where(Collection.owner_id == user_id, Collection.kind == "library")
        .order_by(Collection.id)
    )
    return found if found is not None else create_collection(session, user_id, "Library", "library", None, now)


def find_by_root(session: Session, owner_id: int, root: str) -> int | None:
    """The id of the owner's collection of that folder."""
    return session.scalar(select(Collection.id).where(Collection.owner_id == owner_id, Collection.root == root))


def list_roots(session: Session, owner_id: int) -> list[tuple[int, str]]:
    """(id, root) of the owner's watched folders."""
    rows = session.execute(
        select(Collection.id, Collection.root).where(Collection.owner_id == owner_id, Collection.kind == "folder")
    )
    return [(row.id, cast("str", row.root)) for row in rows]


def create_collection(
    session: Session, owner_id: int, name: str, kind: CollectionKind, root: str | None, now: datetime
) -> int:
    """Makes a collection with a slug of its own and returns its id."""
    collection = Collection(
        owner_id=owner_id, name=name, slug=_free_slug(session, name), kind=kind, root=root, created_at=now
    )
    session.add(collection)
    session.flush()
    return collection.id


def remove_collection(session: Session, collection_id: int) -> None:
    """Deletes the row. Its documents must be gone already: full-text rows and vectors don't follow a cascade."""
    session.execute(delete(Collection).where(Collection.id == collection_id))


def mark_scanned(session: Session, collection_id: int, change: Mapping[str, int], now: datetime) -> None:
    """Notes when the folder was last compared with the database, and what that changed where it did."""
    values: dict[str, Any] = {"scanned_at": now}
    if any(change.values()):
        values |= {"changed_at": now, "change": dict(change)}
    session.execute(update(Collection).where(Collection.id == collection_id).values(values))


def mark_removing(session: Session, collection_id: int, now: datetime) -> None:
    """Hides a collection with its documents from everyone, until they and it are gone."""
    session.execute(update(Collection).where(Collection.id == collection_id).values(removing_at=now))


def is_removing(session: Session, collection_id: int) -> bool:
    """Whether it is there and being removed."""
    query = exists().where(Collection.id == collection_id, Collection.removing_at.is_not(None))
    return bool(session.scalar(select(query)))


def set_watch(session: Session, collection_id: int, state: WatchState | None) -> None:
    """Notes how a folder's changes become known."""
    session.execute(update(Collection).where(Collection.id == collection_id).values(watch=state))


def set_patterns(session: Session, collection_id: int, include: Sequence[str], exclude: Sequence[str]) -> None:
    """Stores which of a folder's files are wanted."""
    values = {"include": list(include), "exclude": list(exclude)}
    session.execute(update(Collection).where(Collection.id == collection_id).values(values))


def _rows(session: Session, condition: ColumnElement[bool]) -> list[CollectionRow]:
    living = (
        select(func.count())
        .where(Document.collection_id == Collection.id, Document.deleted_at.is_(None))
        .correlate(Collection)
        .scalar_subquery()
    )
    return [
        CollectionRow(
            id=row.id,
            name=row.name,
            slug=row.slug,
            kind=cast("CollectionKind", row.kind),
            root=row.root,
            documents=documents,
            scanned_at=row.scanned_at,
            created_at=row.created_at,
            include=tuple(row.include or ()),
            exclude=tuple(row.exclude or ()),
            watch=cast("WatchState | None", row.watch),
            changed_at=row.changed_at,
            change=row.change,
            removing=row.removing_at is not None,
        )
        for row, documents in session.execute(select(Collection, living).where(condition).order_by(Collection.id))
    ]


def _free_slug(session: Session, name: str) -> str:
    """`name` in lower-case ASCII words, with a number where another collection has that already."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower().replace("'", "")
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "folder"
    taken = set(session.scalars(select(Collection.slug).where(Collection.slug.startswith(base, autoescape=True))))
    slug, number = base, 1
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug
