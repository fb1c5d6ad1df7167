"""The detector `requery`: a turn that searches for what it has already searched for. Pure.

Two searches are near duplicates when their words are (Jaccard of the word sets at least 0.9, the other arguments
equal), or when they brought the same chunks. Searches of one reply are not compared with each other: none had been
answered yet. Used by `app.guard.turn_guard`, one per turn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import orjson

from app.guard.detectors import Trip, normalised
from app.guard.signature import canonical_json

SEARCHES: Mapping[str, str] = MappingProxyType({"search": "query"})
"""Tools that search, and the argument that says for what."""
LIKENESS = 0.9
THRESHOLD = 1

_WORDS = re.compile(r"\w+")
_COUNTS = frozenset({"k", "limit"})
"""How many hits are asked for doesn't make another search."""


@dataclass(slots=True)
class _Search:
    words: frozenset[str]
    rest: bytes
    chunks: frozenset[int] = frozenset()


class RequeryDetector:
    """Remembers the searches of a turn, those that were not run included."""

    def __init__(self, searches: Mapping[str, str] = SEARCHES) -> None:
        self._searches = searches
        self._earlier: list[_Search] = []
        self._batch: list[_Search | None] = []

    def check(self, calls: Sequence[tuple[str, str]], signature: str) -> Trip | None:
        """Takes a batch of (name, arguments as JSON text) before it runs.

        It trips when every call of it is a search that was made before: a batch that also does something new goes on.
        """
        self._remember()
        self._batch = [self._search(name, arguments) for name, arguments in calls]
        before = [
            sum(_alike(search, one) for one in self._earlier) if search is not None else 0 for search in self._batch
        ]
        if not before or not all(before):
            return None
        return Trip("requery", signature, max(before) + 1, THRESHOLD)

    def record(self, chunks: Sequence[Sequence[int] | None], signature: str) -> tuple[Trip | None, tuple[int, ...]]:
        """Takes the chunks that each call of the checked batch brought; a trip, and the positions of the calls that
        brought what an earlier search had brought. Searches that found nothing are not compared."""
        repeats: dict[int, int] = {}
        for position, (search, ids) in enumerate(zip(self._batch, chunks, strict=False)):
            if search is None or not ids:
                continue
            search.chunks = frozenset(ids)
            if before := sum(one.chunks == search.chunks for one in self._earlier):
                repeats[position] = before + 1
        self._remember()
        if not repeats:
            return None, ()
        return Trip("requery", signature, max(repeats.values()), THRESHOLD), tuple(repeats)

    def _remember(self) -> None:
        self._earlier += [search for search in self._batch if search is not None]
        self._batch = []

    def _search(self, name: str, arguments: str) -> _Search | None:
        """None for a call that isn't a search for words."""
        if (asked := self._searches.get(name)) is None:
            return None
        try:
            given: object = orjson.loads(arguments)
        except ValueError:
            return None
        values = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        query = values.get(asked)
        if not isinstance(query, str) or not (text := normalised(query)):
            return None
        rest = {key: value for key, value in values.items() if key != asked and key not in _COUNTS}
        return _Search(frozenset(_WORDS.findall(text)) or frozenset({text}), canonical_json(rest))


def _alike(one: _Search, other: _Search) -> bool:
    if one.rest != other.rest:
        return False
    return len(one.words & other.words) >= LIKENESS * len(one.words | other.words)
