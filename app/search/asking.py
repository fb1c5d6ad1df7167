"""What people write to narrow a search, made into filters.

Owns the one reading of a path, types and days, for the API, the pages, the chat and the command line; which documents
they let through is `app.store.scope`'s.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from app.errors import InvalidInputError
from app.search.hits import SearchFilters
from app.store.document_types import TYPE_WORDS

PATH_CHARS = 1000
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
"""Days that are counted in nanoseconds end in 2262, where 64 bits do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was written beside a question; blank and None are anywhere. `since` and `until` are days (2026-11-30, both
    count whole, in UTC) or moments with a zone (2026-11-30T12:00:00Z, `until` exclusive)."""

    collections: tuple[int, ...] | None = None
    documents: tuple[int, ...] | None = None
    path: str | None = None
    types: Iterable[str] | None = None
    since: str | None = None
    until: str | None = None


def filters_of(asked: Asked) -> SearchFilters:
    """The filters.

    Raises:
        InvalidInputError: filter_path_too_long, filter_type_unknown, filter_date_invalid, filter_dates_reversed.
    """
    since, until = _moment(asked.since, is_end=False), _moment(asked.until, is_end=True)
    if since is not None and until is not None and since >= until:
        raise InvalidInputError("filter_dates_reversed", params={"since": asked.since, "until": asked.until})
    return SearchFilters(asked.collections, asked.documents, _path(asked.path), _types(asked.types), since, until)


def _path(written: str | None) -> str | None:
    """Without the slash that people put before a path."""
    path = (written or "").strip().lstrip("/")
    if len(path) > PATH_CHARS:
        raise InvalidInputError("filter_path_too_long", params={"limit": PATH_CHARS})
    return path or None


def _types(written: Iterable[str] | None) -> tuple[str, ...] | None:
    if written is None:
        return None
    types = tuple(dict.fromkeys(one.strip().lower() for one in written))
    for one in types:
        if one not in TYPE_WORDS:
            raise InvalidInputError("filter_type_unknown", params={"type": one, "types": ", ".join(TYPE_WORDS)})
    return types


def _moment(written: str | None, *, is_end: bool) -> datetime | None:
    said = (written or "").strip()
    if not said:
        return None
    try:
        if "T" in said.upper() or " " in said:
            moment = datetime.fromisoformat(said)
        else:
            day = date.fromisoformat(said) + timedelta(days=int(is_end))
            moment = datetime.combine(day, time(), UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError("filter_date_invalid", params={"date": said[:40]}) from None
    if moment.tzinfo is None or not _FIRST <= moment < _LAST:
        raise InvalidInputError("filter_date_invalid", params={"date": said[:40]})
    return moment
