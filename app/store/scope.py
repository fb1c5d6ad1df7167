"""Who asks, and where they want to look: the conditions of a search, as SQL.

Owns the filters and the conditions they become. Search (`app.search.scope`), the tools of a turn (`tool_reads`) and
counts all take them from here, so that none of them sees more than another. Every value is a parameter: the SQL is
the same for every question, and compiled once where that counts (`prepared`).
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import BigInteger, ColumnElement, Integer, String, bindparam, case, func, or_, type_coerce

from app.store.among import values_of
from app.store.collections import readable_ids
from app.store.document_types import type_of
from app.store.models.library import Document


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Where to look, None for anywhere. All hold at once; what the user may not see stays out whatever is asked. An
    empty tuple finds nothing.

    `collections` and `documents` are ids, `path` is how a document's path begins, `types` are words of
    `document_types.TYPE_WORDS`. `since` (inclusive) and `until` (exclusive) are about the document's own date: when its
    file was changed where that is known, else when it was added. Made from what people write by `app.search.asking`.
    """

    collections: tuple[int, ...] | None = None
    documents: tuple[int, ...] | None = None
    path: str | None = None
    types: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYWHERE = SearchFilters()


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, and where they want to look."""

    user_id: int
    filters: SearchFilters = EVERYWHERE

    @property
    def is_narrow(self) -> bool:
        """Whether documents are named."""
        return self.filters.documents is not None

    @property
    def picks_documents(self) -> bool:
        """Whether something about the documents themselves is asked, not only where they are."""
        return self.filters != SearchFilters(self.filters.collections)

    def parameters(self) -> dict[str, Any]:
        """What fills the parameters of `in_scope()`."""
        filters = self.filters
        return {
            "scope_user": self.user_id,
            "scope_collections": _listed(filters.collections),
            "scope_documents": _listed(filters.documents),
            "scope_path": filters.path,
            "scope_types": _listed(filters.types),
            "scope_since": _stored(filters.since),
            "scope_since_ns": _nanoseconds(filters.since),
            "scope_until": _stored(filters.until),
            "scope_until_ns": _nanoseconds(filters.until),
        }


def in_scope() -> list[ColumnElement[bool]]:
    """The conditions on `Document` that keep other people's, removed and filtered ones out. To be filled by
    `Scope.parameters()`."""
    column = Document.__table__.c
    begins = func.substr(column.path, 1, func.length(_parameter("scope_path"))) == _parameter("scope_path")
    return [
        column.collection_id.in_(readable_ids(cast("int", bindparam("scope_user", type_=Integer)))),
        column.deleted_at.is_(None),
        _asked_for(column.collection_id, "scope_collections"),
        _asked_for(column.id, "scope_documents"),
        or_(_parameter("scope_path").is_(None), begins),
        _asked_for(type_of(), "scope_types"),
        or_(_parameter("scope_since").is_(None), _dated(">=", "scope_since")),
        or_(_parameter("scope_until").is_(None), _dated("<", "scope_until")),
    ]


def own_date() -> ColumnElement[datetime]:
    """When a document's file was changed, where that is known, else when it was added: as stored, without a zone."""
    column = Document.__table__.c
    changed = func.strftime("%Y-%m-%d %H:%M:%f", column.mtime_ns / 1e9, "unixepoch")
    return case((column.mtime_ns.is_(None), column.created_at), else_=changed)


def _dated(operator: str, parameter: str) -> ColumnElement[bool]:
    column = Document.__table__.c
    nanoseconds = bindparam(parameter + "_ns", type_=BigInteger)
    added = type_coerce(column.created_at, String).op(operator, is_comparison=True)(_parameter(parameter))
    changed = column.mtime_ns.op(operator, is_comparison=True)(nanoseconds)
    return case((column.mtime_ns.is_(None), added), else_=changed)


def _asked_for(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    return or_(_parameter(parameter).is_(None), column.in_(values_of(parameter)))


def _parameter(name: str) -> ColumnElement[str]:
    return bindparam(name, type_=String)


def _listed(values: tuple[int, ...] | tuple[str, ...] | None) -> str | None:
    return None if values is None else json.dumps(values)


def _stored(moment: datetime | None) -> str | None:
    """As the database holds a time."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _nanoseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
