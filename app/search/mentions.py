"""Which documents mention something: every one, counted, from the catalogue; nothing is ranked or left out.

Owns what "mention" means: a passage of the document holds all the words asked for, in any inflection the word index
folds together, a quoted phrase as one. Called by the search page and by questions of that kind in a chat.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Integer, bindparam, column, func, select, table
from sqlalchemy.orm import Session

from app.search.hits import SearchFilters
from app.search.scope import VISIBLE
from app.search.stopwords import STOP_WORDS
from app.search.words import clean
from app.store.models import Chunk, Document
from app.store.scope import Scope
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


def mentions(
    session: Session, user_id: int, words: str, filters: SearchFilters, limit: int, offset: int = 0
) -> Mentions:
    """The documents that `user_id` may read, `filters` let through, and that hold all of `words` in one passage.

    Nothing mentions words that are only punctuation.
    """
    scope = Scope(user_id, filters)
    of = count_searchable(session, scope)
    parts = parts_of(words)
    if not parts:
        return Mentions(0, of, ())
    values = {**scope.parameters(), "expression": _expression(parts)}
    total = int(session.execute(_TOTAL, values).scalar_one())
    page = session.execute(_PAGE.limit(limit).offset(offset), values)
    return Mentions(total, of, tuple(MentionRow(*row) for row in page))


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


_FOUND = (
    select(Chunk.document_id, func.count().label("passages"), func.min(Chunk.id).label("chunk_id"))
    .join(_FTS, _FTS.c.rowid == Chunk.id)
    .where(_FTS.c.chunks_fts.op("MATCH")(bindparam("expression")), Chunk.document_id.in_(VISIBLE))
    .group_by(Chunk.document_id)
    .subquery()
)
_TOTAL = select(func.count()).select_from(_FOUND)
_PAGE = (
    select(Document.id, Document.title, Document.path, _FOUND.c.passages, Document.collection_id, _FOUND.c.chunk_id)
    .join(_FOUND, _FOUND.c.document_id == Document.id)
    .order_by(_FOUND.c.passages.desc(), Document.path, Document.id)
)
