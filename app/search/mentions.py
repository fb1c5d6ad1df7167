"""Which documents mention something: every one, counted, from the catalogue; nothing is ranked or left out.

Owns what "mention" means: a passage of the document holds all the words asked for, in any inflection the word index
folds together, a quoted phrase as one; writing without spaces and identifiers as they stand. Called by the search page
and by questions of that kind in a chat.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Integer, Select, Subquery, bindparam, column, exists, func, select, table
from sqlalchemy.orm import Session

from app.search import grams
from app.search.fragments import fold, fragments_of
from app.search.hits import EVERYWHERE, SearchFilters
from app.search.scope import VISIBLE
from app.search.stopwords import STOP_WORDS
from app.search.words import clean
from app.store.among import values_of
from app.store.document_types import type_of
from app.store.models import Chunk, Document
from app.store.scope import Scope, own_date
from app.store.tool_reads import count_searchable

MOST_PARTS = 16
"""Words and phrases of one question at most; what comes after is left out."""

_PART = re.compile(r'["“„]([^"“”„]+)["”“]|(\S+)')
_WORD = re.compile(r"[^\W_]")
_FTS = table("chunks_fts", column("rowid", Integer), column("chunks_fts"))


@dataclass(frozen=True, slots=True)
class MentionRow:
    """A document, in how many of its passages the words stand, and the first of those."""

    document_id: int
    title: str
    path: str
    passages: int
    collection_id: int
    chunk_id: int


@dataclass(frozen=True, slots=True)
class Mentions:
    """`total` documents of the `of` that could be searched mention it; `rows` are one page of them, the most passages
    first, equal ones by path."""

    total: int
    of: int
    rows: tuple[MentionRow, ...]


@dataclass(frozen=True, slots=True)
class Facets:
    """(value, documents) each: ids of collections, words of types, years ("2026"). `has_words`: they are counts of the
    documents that mention the words, else of all that can be searched."""

    collections: tuple[tuple[int, int], ...]
    types: tuple[tuple[str, int], ...]
    years: tuple[tuple[str, int], ...]
    has_words: bool


def mentions(
    session: Session, user_id: int, words: str, filters: SearchFilters, limit: int, offset: int = 0
) -> Mentions:
    """The documents that `user_id` may read, `filters` let through, and that hold all of `words` in one passage.

    Nothing mentions words that are only punctuation.
    """
    scope = Scope(user_id, filters)
    of = count_searchable(session, scope)
    needed = _needed(session, words)
    if needed is None:
        return Mentions(0, of, ())
    found, values = _found(needed), {**scope.parameters(), **needed.values()}
    total = int(session.execute(select(func.count()).select_from(found), values).scalar_one())
    page = session.execute(_rows(found).limit(limit).offset(offset), values)
    return Mentions(total, of, tuple(MentionRow(*row) for row in page))


def facets(session: Session, user_id: int, words: str, filters: SearchFilters) -> Facets:
    """How the documents that mention `words` fall into collections, types and years, each counted with all filters but
    its own; all documents that can be searched, where nothing mentions them."""
    needed = _needed(session, words)
    if needed is not None and not mentions(session, user_id, words, EVERYWHERE, 1).total:
        needed = None
    without = (
        replace(filters, collections=None),
        replace(filters, types=None),
        replace(filters, since=None, until=None),
    )
    columns = (Document.collection_id, type_of(), func.substr(own_date(), 1, 4))
    counted = [
        _counted(session, column, Scope(user_id, some), needed) for column, some in zip(columns, without, strict=True)
    ]
    return Facets(*(tuple(rows) for rows in counted), has_words=needed is not None)


def _counted(session: Session, column: Any, scope: Scope, needed: "_Needed | None") -> list[tuple[Any, int]]:
    holds = exists().where(Chunk.document_id == Document.id)
    values = scope.parameters()
    if needed is not None:
        holds, values = Document.id.in_(select(_found(needed).c.document_id)), {**values, **needed.values()}
    query = select(column, func.count()).where(Document.id.in_(VISIBLE), holds).group_by(column).order_by(column)
    return [(row[0], row[1]) for row in session.execute(query, values)]


@dataclass(frozen=True, slots=True)
class _Needed:
    """What a passage has to hold: what the word index knows, and those that hold all of the rest."""

    expression: str | None
    held: frozenset[int] | None

    def values(self) -> dict[str, str]:
        """The parameters of `_found`."""
        held = {} if self.held is None else {"held": json.dumps(sorted(self.held))}
        return held if self.expression is None else {"expression": self.expression, **held}


def _needed(session: Session, words: str) -> _Needed | None:
    parts = parts_of(words)
    if not parts:
        return None
    special = [part for part in parts if _is_special(session, part)]
    held = [frozenset(grams.in_text(session, fold(part))) for part in special]
    ordinary = [part for part in parts if part not in special]
    return _Needed(_expression(ordinary) if ordinary else None, held[0].intersection(*held) if held else None)


def _is_special(session: Session, part: str) -> bool:
    """Whether the word index can't say where a part stands: see `fragments`."""
    fragments = fragments_of(part)
    if fragments.grams or (fragments.joined and " " not in part):
        return True
    return bool(fragments.names) and not session.execute(_ANY, {"expression": _expression([part])}).first()


def _found(needed: _Needed) -> Subquery:
    query = select(Chunk.document_id, func.count().label("passages"), func.min(Chunk.id).label("chunk_id")).where(
        Chunk.document_id.in_(VISIBLE)
    )
    if needed.expression is not None:
        query = query.join(_FTS, _FTS.c.rowid == Chunk.id).where(_MATCHES)
    if needed.held is not None:
        query = query.where(Chunk.id.in_(values_of("held")))
    return query.group_by(Chunk.document_id).subquery()


def _rows(found: Subquery) -> Select[*tuple[Any, ...]]:
    columns = (Document.id, Document.title, Document.path, found.c.passages, Document.collection_id, found.c.chunk_id)
    joined = select(*columns).join(found, found.c.document_id == Document.id)
    return joined.order_by(found.c.passages.desc(), Document.path, Document.id)


def parts_of(words: str) -> list[str]:
    """The words and quoted phrases that a passage has to hold; stop words only inside quotes, or where nothing else was
    written."""
    found = [(match[1], match[2]) for match in _PART.finditer(clean(words))]
    parts = [(quoted or word, bool(quoted)) for quoted, word in found if _WORD.search(quoted or word)]
    telling = [part for part, is_quoted in parts if is_quoted or _bare(part) not in STOP_WORDS]
    return list(dict.fromkeys(telling or [part for part, _ in parts]))[:MOST_PARTS]


def _bare(word: str) -> str:
    return re.sub(r"^\W+|\W+$", "", word).casefold()


def _expression(parts: Sequence[str]) -> str:
    """Every part as a phrase of the passage's own text: in title and heading it would count for every passage below."""
    phrases = " AND ".join('"' + part.replace('"', '""') + '"' for part in parts)
    return f"text : ({phrases})"


_MATCHES = _FTS.c.chunks_fts.op("MATCH")(bindparam("expression"))
_ANY = select(_FTS.c.rowid).where(_MATCHES).limit(1)
