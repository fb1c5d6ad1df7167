"""What a typed beginning may become: the names that a question can hold, while they are written.

Looks only at what the user may read, in SQL. What a whole name stands for is `naming.py`'s. Called by
`app.web.suggest`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.store.collections import readable_ids
from app.store.models.library import Document
from app.store.naming import (
    SOURCES,
    documents_of,
    is_readable,
    key_of,
    like_of,
    paths_like,
    phrase_of,
    readable_collections,
    titled,
)

SUGGESTED_MAX = 8

NameKind = Literal["document", "collection"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a beginning may become: `name` is what has to be typed, `title` what the content calls it, `place` its
    collection."""

    name: str
    title: str
    place: str


def suggest(
    session: Session, user_id: int, beginning: str, kind: NameKind, limit: int = SUGGESTED_MAX
) -> list[Suggestion]:
    """What may be meant by the letters typed so far. Collections: what begins with them, then what holds them.
    Documents likewise by file name, then by path, then by title; with nothing typed the newest."""
    if kind == "collection":
        return _suggested_collections(session, user_id, beginning, limit)
    slugs = {row.id: row for row in readable_collections(session, user_id)}
    wanted = key_of(beginning).lstrip("/")
    ids = (
        _beginning_with(session, user_id, beginning.lstrip("/"), limit) if wanted else _newest(session, user_id, limit)
    )
    if wanted and len(ids) < limit:
        rows = titled(session, user_id, None, f'"{phrase_of(beginning)}" *')
        ids += [id_ for id_, title in rows if id_ not in ids and wanted in key_of(title)][: limit - len(ids)]
    chosen = {row.id: row for row in documents_of(session, user_id, ids)}
    twice = _stored_twice(session, user_id, [row.path for row in chosen.values()])
    return [
        Suggestion(
            name=f"{slugs[row.collection_id].slug}/{row.path}" if row.path in twice else row.path,
            title="" if row.title == PurePosixPath(row.path).name else row.title,
            place=slugs[row.collection_id].name,
        )
        for row in (chosen[id_] for id_ in ids if id_ in chosen)
    ]


def _beginning_with(session: Session, user_id: int, beginning: str, limit: int) -> list[int]:
    """What is called so by its first letters, else what holds them anywhere; the shortest paths first."""
    like, wanted = like_of(beginning), key_of(beginning)
    ids: list[int] = []
    for patterns in ([f"{like}%", f"%/{like}%"], [f"%{like}%"]):
        rows = paths_like(session, user_id, None, patterns)
        ranked = sorted((rank, len(row.path), row.path, row.id) for row in rows if (rank := _fit(row.path, wanted)) < 4)
        ids += [row[-1] for row in ranked if row[-1] not in ids][: limit - len(ids)]
        if len(ids) == limit:
            break
    return ids


def _stored_twice(session: Session, user_id: int, paths: Sequence[str]) -> set[str]:
    """Those of the paths that several documents have."""
    query = (
        select(Document.path)
        .where(is_readable(user_id, None), Document.source.in_(SOURCES), Document.path.in_(paths))
        .group_by(Document.path)
        .having(func.count() > 1)
    )
    return set(session.scalars(query))


def _suggested_collections(session: Session, user_id: int, beginning: str, limit: int) -> list[Suggestion]:
    wanted = key_of(beginning)
    rows = [
        (not (key_of(row.slug).startswith(wanted) or key_of(row.name).startswith(wanted)), row)
        for row in readable_collections(session, user_id)
        if wanted in key_of(row.slug) or wanted in key_of(row.name)
    ]
    rows.sort(key=lambda pair: pair[0])
    return [Suggestion(row.slug, row.name, "") for _, row in rows[:limit]]


def _newest(session: Session, user_id: int, limit: int) -> list[int]:
    """By id from the end: the sum keeps SQLite from sorting the whole collection instead."""
    collection: ColumnElement[int] = Document.collection_id + 0
    query = select(Document.id).where(Document.deleted_at.is_(None), collection.in_(readable_ids(user_id)))
    return list(session.scalars(query.where(Document.status != "failed").order_by(Document.id.desc()).limit(limit)))


def _fit(path: str, wanted: str) -> int:
    """How well a path fits what was typed: 0 its file name begins so, 1 a word of the file name does, 2 it lies in the
    file name, 3 in the path, 4 not at all."""
    key = key_of(path)
    name = key.rpartition("/")[2]
    if name.startswith(wanted) or key.startswith(wanted):
        return 0
    if wanted in name:
        return 1 if re.search(rf"[\W_]{re.escape(wanted)}", name) else 2
    return 3 if wanted in key else 4
