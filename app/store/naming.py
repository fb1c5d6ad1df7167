"""What a name stands for: documents, folders and collections by the words people call them.

Every function takes the user's id and looks only at what is theirs to read, in SQL. Letters are compared without case
and in one Unicode form. The grammar of names in a question is `app.rag.chips`'; called by `app.api.asked`. What a typed
beginning may become is `suggesting.py`'s.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sqlalchemy import ColumnElement, Integer, func, or_, select, text
from sqlalchemy.orm import Session

from app.store.collections import readable_ids
from app.store.models.library import Chunk, Collection, Document

NAMED_MAX = 20
"""Documents that one name may stand for; the first by path are taken."""

_ROWS_MAX = 2_000
SOURCES = ("upload", "folder", "url")
"""All there are: with them the index finds a whole path at once."""


@dataclass(frozen=True, slots=True)
class NamedCollection:
    """A collection the user may read."""

    id: int
    name: str
    slug: str


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that was named: `chars` of canonical text, 0 while it was not read; `status` and `error` as the list
    shows them."""

    id: int
    collection_id: int
    title: str
    path: str
    chars: int
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A folder inside a collection; `path` ends with a slash and is empty for the collection itself."""

    collection_id: int
    path: str


def readable_collections(session: Session, user_id: int) -> list[NamedCollection]:
    """All of them, by name."""
    query = select(Collection.id, Collection.name, Collection.slug).where(Collection.id.in_(readable_ids(user_id)))
    return sorted((NamedCollection(*row) for row in session.execute(query)), key=lambda row: (key_of(row.name), row.id))


def collections_called(collections: Iterable[NamedCollection], name: str) -> list[NamedCollection]:
    """Those whose slug or name `name` is; of a name also with its words joined by hyphens."""
    wanted = key_of(name)
    return [
        row for row in collections if wanted in (key_of(row.slug), key_of(row.name), key_of("-".join(row.name.split())))
    ]


def documents_called(
    session: Session, user_id: int, name: str, within: Sequence[int] | None = None
) -> tuple[list[NamedDocument], int]:
    """The documents that `name` stands for, by path, at most `NAMED_MAX`; and how many there are in all.

    The first of these readings that fits anything: a whole path (also behind its collection's slug), the end of a path
    from a slash on, either of them without the file's extension, the title. `within` are the collections looked at.
    """
    name = name.strip("/")
    if not name:
        return [], 0
    ids = _by_path(session, user_id, name, within) or _by_title(session, user_id, name, within)
    return documents_of(session, user_id, ids[:NAMED_MAX]), len(ids)


def folders_called(session: Session, user_id: int, name: str, within: Sequence[int] | None = None) -> list[NamedFolder]:
    """The folders that `name` stands for: a path from the top of a collection (also behind its slug) or else the end of
    one from a slash on; a slug alone is the collection."""
    name = name.strip("/")
    if not name:
        return []
    slug, _, rest = name.partition("/")
    places = {row.id for row in collections_called(readable_collections(session, user_id), slug)}
    found = {NamedFolder(place, "") for place in places if not rest and (within is None or place in within)}
    patterns = [like_of(name) + "/%", "%/" + like_of(name) + "/%", *([like_of(rest) + "/%"] if rest else [])]
    wanted, inside = key_of(name) + "/", key_of(rest) + "/"
    ends: set[NamedFolder] = set()
    for row in paths_like(session, user_id, within, patterns):
        for parent in list(PurePosixPath(row.path).parents)[:-1]:
            folder, key = NamedFolder(row.collection_id, f"{parent}/"), key_of(f"{parent}/")
            if key == wanted or (rest and row.collection_id in places and key == inside):
                found.add(folder)
            elif key.endswith("/" + wanted):
                ends.add(folder)
    return sorted(found or ends, key=lambda folder: (folder.collection_id, folder.path))


def documents_in(session: Session, user_id: int, folders: Sequence[NamedFolder]) -> list[int]:
    """The ids of what lies in any of the folders, however deep."""
    if not folders:
        return []
    places = [
        (Document.collection_id == folder.collection_id) & Document.path.startswith(folder.path, autoescape=True)
        for folder in folders
    ]
    return list(session.scalars(select(Document.id).where(is_readable(user_id, None), or_(*places))))


@dataclass(frozen=True, slots=True)
class PathRow:
    """Where a document lies."""

    id: int
    collection_id: int
    path: str


def _by_path(session: Session, user_id: int, name: str, within: Sequence[int] | None) -> list[int]:
    slug, _, rest = name.partition("/")
    places = (
        {row.id for row in collections_called(readable_collections(session, user_id), slug)} if rest else set[int]()
    )
    like = like_of(name)
    patterns = [like, "%/" + like, like + ".%", "%/" + like + ".%"]
    if places:
        patterns += [like_of(rest), like_of(rest) + ".%"]
    if found := _exactly(session, user_id, name, rest, places, within):
        return found
    wanted, inside = key_of(name), key_of(rest)
    tiers: list[list[int]] = [[], [], []]
    for row in paths_like(session, user_id, within, patterns):
        path = key_of(row.path)
        stem = path.rpartition(".")[0]
        in_place = row.collection_id in places
        if path == wanted or (in_place and path == inside):
            tiers[0].append(row.id)
        elif path.endswith("/" + wanted):
            tiers[1].append(row.id)
        elif stem == wanted or stem.endswith("/" + wanted) or (in_place and stem == inside):
            tiers[2].append(row.id)
    return next((tier for tier in tiers if tier), list[int]())


def _exactly(
    session: Session, user_id: int, path: str, rest: str, places: set[int], within: Sequence[int] | None
) -> list[int]:
    """What is stored under the very path: the usual case, as suggestions give whole paths; the index finds it at
    once."""
    query = select(Document.id, Document.collection_id, Document.path).where(
        is_readable(user_id, within), Document.source.in_(SOURCES), Document.path.in_((path, rest))
    )
    rows = sorted(session.execute(query), key=lambda row: (row.path, row.id))
    return [row.id for row in rows if row.path == path or row.collection_id in places]


def _by_title(session: Session, user_id: int, name: str, within: Sequence[int] | None) -> list[int]:
    wanted = key_of(name)
    found = titled(session, user_id, within, f'"{phrase_of(name)}"')
    return [id_ for id_, title in found if key_of(title) == wanted]


def paths_like(session: Session, user_id: int, within: Sequence[int] | None, patterns: Sequence[str]) -> list[PathRow]:
    """Found in the index of living paths."""
    query = (
        select(Document.id, Document.collection_id, Document.path)
        .where(is_readable(user_id, within), or_(*(Document.path.like(pattern, escape="\\") for pattern in patterns)))
        .limit(_ROWS_MAX)
    )
    return sorted((PathRow(*row) for row in session.execute(query)), key=lambda row: (row.path, row.id))


def titled(session: Session, user_id: int, within: Sequence[int] | None, phrase: str) -> list[tuple[int, str]]:
    """Found by the full text of titles: to compare each title, every document's row would be read, which took 100 ms
    for 20,000. So what holds no passage has no title either."""
    chunks = text("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :phrase LIMIT :most").columns(rowid=Integer)
    held = select(Chunk.document_id).where(Chunk.id.in_(select(chunks.subquery().c.rowid)))
    query = select(Document.id, Document.title).where(is_readable(user_id, within), Document.id.in_(held))
    found = session.execute(
        query.order_by(Document.path, Document.id), {"phrase": f"title : {phrase}", "most": _ROWS_MAX}
    )
    return [(row.id, row.title) for row in found]


def phrase_of(name: str) -> str:
    """A name inside the quotes of a full-text phrase."""
    return name.replace('"', '""').replace("\x00", "")


def documents_of(session: Session, user_id: int, ids: Sequence[int]) -> list[NamedDocument]:
    """Those of the documents that the user may read, by path."""
    if not ids:
        return []
    query = (
        select(
            Document.id,
            Document.collection_id,
            Document.title,
            Document.path,
            func.coalesce(func.length(Document.text), 0),
            Document.status,
            Document.error,
        )
        .where(Document.id.in_(ids), is_readable(user_id, None))
        .order_by(Document.path, Document.id)
    )
    rows = [NamedDocument(*row) for row in session.execute(query)]
    return [row if row.title else _with_title(row) for row in rows]


def _with_title(row: NamedDocument) -> NamedDocument:
    name = PurePosixPath(row.path).name
    return NamedDocument(row.id, row.collection_id, name, row.path, row.chars, row.status, row.error)


def is_readable(user_id: int, within: Sequence[int] | None) -> ColumnElement[bool]:
    """The condition on `Document`: living, in a collection of the user's, and in one of `within`."""
    readable = Document.deleted_at.is_(None) & Document.collection_id.in_(readable_ids(user_id))
    return readable if within is None else readable & Document.collection_id.in_(within)


def key_of(text: str) -> str:
    """Letters without case, in one Unicode form: a Mac stores `ü` as two characters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def like_of(text: str) -> str:
    """A LIKE pattern that fits at least what has the same `key_of`: SQLite knows case and form of ASCII only."""
    escaped = re.sub(r"([%_\\])", r"\\\1", text)
    # One ASCII letter before a run may be the base of an accent that the path stores apart, or the other way round.
    return re.sub(r"[A-Za-z]?[^\x00-\x7f]+(?:ss|SS)?|ss|SS|sS|Ss", "%", escaped)
