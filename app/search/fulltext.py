"""The full-text index `chunks_fts`: keeping it equal to the chunks, and asking it.

Owns the rows of the index and its ranking; which words of a question count is `app.search.words`. `index` and `unindex`
are called in the transaction that changes chunks, path or title: `unindex` before the change (FTS5 must be told the
very text it holds), `index` after it. They keep the trigram index (`app.search.grams`) in step, too. `weigh` and
`search` are called by `app.search.worded`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Float, Integer, String, bindparam, column, literal_column, select, table, text
from sqlalchemy.orm import Session

from app.search import grams
from app.search.frequencies import Frequencies
from app.search.hits import EVERYWHERE
from app.search.scope import Scope, is_visible
from app.search.words import Term
from app.store.models import Chunk
from app.store.prepared import Prepared

POSTINGS = (4_000, 8_000)
"""Rows that a query may touch, a fifth of the index within these bounds: terms are taken by rarity until they are used
up. Common words cost most and tell least: on SciFact (5,825 chunks) and the homelab questions 4,000 find as well as
6,000 or 20,000 once vectors join in, 3,000 don't; a row costs 1.5 µs."""

RANKED = 8_000
"""Rows that a query ranks at most: where even its rarest word stands in more, one row in two, three… is. A document's
passages follow each other, so each document keeps its chance; what such a word tells is little, and vectors join in."""

NARROWING = 0.5
"""Share of the chunks in which a term may stand at most if asking for it, too, is to leave many out."""

MATCH_TERMS = 64
"""Terms of a query at most; a pasted page has hundreds."""

COLUMN_WEIGHTS = "0.5, 2.0, 2.0, 1.0"
"""Of name, title, heading, text."""

REACH = 2
"""Rows ranked per row wanted, since some belong to documents the user may not see; all of them if these are too few.
Keeping the best 200 of some thousands in order takes half as long as sorting them."""

ABSENT_WORDS = 3
ABSENT_SHARE = 0.25
"""Of a question's words, and of its weight: what may be unknown at most and has to be at least for `absence` to count.
A longer question says the same thing several ways, some of them strange to the library."""

ABSENT_FROM = 3_000
"""Chunks that a library has to have for a missing word to tell something: with fewer, words as common as "long" are
missing by chance."""

SATURATED = 2.2
"""BM25's k1 + 1: what an idf is multiplied by when a passage holds a term without end."""

_BEGINNING = 4
"""Letters that make a beginning."""

_BATCH = 5_000
_FTS = table("chunks_fts", column("rowid", Integer), column("chunks_fts"))
_SIZE = Prepared(text("SELECT count(*) FROM chunks_fts_docsize"))
_BEGINNING_WITH = Prepared(text("SELECT 1 FROM chunks_fts_terms WHERE term >= :first AND term < :last LIMIT 1"))

_INDEX = text(
    "INSERT INTO chunks_fts(rowid, name, title, heading, text) SELECT id, name, title, heading, text FROM chunk_search "
    "WHERE id IN :ids AND id NOT IN (SELECT id FROM chunks_fts_docsize WHERE id IN :ids)"
).bindparams(bindparam("ids", expanding=True))

_INDEX_DOCUMENT = text(
    "INSERT INTO chunks_fts(rowid, name, title, heading, text) SELECT id, name, title, heading, text FROM chunk_search "
    "WHERE id IN (SELECT id FROM chunks WHERE document_id = :document) "
    "AND id NOT IN (SELECT id FROM chunks_fts_docsize)"
)

_UNINDEX_DOCUMENT = text(
    "INSERT INTO chunks_fts(chunks_fts, rowid, name, title, heading, text) "
    "SELECT 'delete', id, name, title, heading, text FROM chunk_search "
    "WHERE id IN (SELECT id FROM chunks WHERE document_id = :document) "
    "AND id IN (SELECT id FROM chunks_fts_docsize)"
)


def index(session: Session, chunk_ids: Sequence[int]) -> None:
    """Makes chunks findable by their words; those already in the index are left alone."""
    for start in range(0, len(chunk_ids), _BATCH):
        session.execute(_INDEX, {"ids": list(chunk_ids[start : start + _BATCH])})
    grams.index(session, chunk_ids)


def index_document(session: Session, document_id: int) -> None:
    """`index` for every chunk of a document."""
    session.execute(_INDEX_DOCUMENT, {"document": document_id})
    grams.index_document(session, document_id)


def unindex(session: Session, document_id: int, *, keeps_text: bool = False) -> None:
    """Takes every chunk of a document out of the index.

    To be called while the rows still say what was indexed: before chunks are deleted, before path or title change.

    Args:
        keeps_text: Only path or title change; what the trigram index holds of the passages stays right.
    """
    session.execute(_UNINDEX_DOCUMENT, {"document": document_id})
    if not keeps_text:
        grams.unindex(session, document_id)


def rebuild(session: Session) -> None:
    """Builds both indexes anew from the chunks, whole."""
    session.execute(text("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')"))
    grams.rebuild(session)


def check(session: Session) -> None:
    """Compares both indexes with the passages, whole; the trigram index only once it knows all of them. Needs a session
    that may write, and writes nothing.

    Raises:
        StoreError: when they differ.
    """
    session.execute(text("INSERT INTO chunks_fts(chunks_fts, rank) VALUES ('integrity-check', 1)"))
    if not grams.left(session):
        grams.check(session)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term of the question as this library knows it: in how many chunks it stands, and how much that tells."""

    term: Term
    chunks: int
    idf: float


def size(session: Session) -> int:
    """How many chunks the index holds."""
    return int(_SIZE.rows(session, {})[0][0])


def weigh(session: Session, terms: Sequence[Term], total: int, frequencies: Frequencies) -> list[WeightedTerm]:
    """Each term with its frequency in the whole index of `total` chunks, and its idf: above 0, highest for a word that
    stands nowhere."""
    counts = frequencies.counts(session, [term.stem for term in terms], total)
    return [
        WeightedTerm(term, count := counts.get(term.stem, 0), math.log(1 + (total - count + 0.5) / (count + 0.5)))
        for term in terms
    ]


@dataclass(frozen=True, slots=True)
class Match:
    """An FTS5 expression, and that it may rank only every so manieth row it fits."""

    expression: str
    step: int = 1


def matches(terms: Sequence[WeightedTerm], total: int) -> list[Match]:
    """What a question asks the index, to be tried until one finds enough; every term is quoted, so nothing in it is an
    operator. None when no term stands in any chunk.

    The last is any of its rarest terms. Where the rarest one alone stands in more rows than may be touched, it is asked
    for together with others first, as many as make it rare: they tell which of those rows are the best, and a row that
    is not ranked costs a tenth.
    """
    known = sorted((term for term in terms if term.chunks), key=lambda term: term.chunks)
    if not known:
        return []
    postings, budget = 0, min(max(total // 5, POSTINGS[0]), POSTINGS[1])
    chosen: list[WeightedTerm] = []
    for weighted in known:
        if chosen and (postings + weighted.chunks > budget or len(chosen) == MATCH_TERMS):
            break
        postings += weighted.chunks
        chosen.append(weighted)
    together, rows = _together(known, total, budget)
    narrowed = [Match(_joined(together, " AND "), _step(rows))] if len(together) > 1 else []
    return [*narrowed, Match(_joined(chosen, " OR "), _step(postings))]


def _step(rows: float) -> int:
    return max(1, math.ceil(rows / RANKED))


def _together(known: Sequence[WeightedTerm], total: int, budget: int) -> tuple[list[WeightedTerm], float]:
    """The rarest term, and those that narrow it down to `budget` rows if each stood by chance where it does; and how
    many rows that would be."""
    together, rows = [known[0]], float(known[0].chunks)
    for weighted in known[1:]:
        if rows <= budget or weighted.chunks > NARROWING * total:
            break
        together.append(weighted)
        rows *= weighted.chunks / total
    return together, rows


def _joined(terms: Sequence[WeightedTerm], operator: str) -> str:
    return operator.join(f'"{weighted.term.word}"' for weighted in terms)


def ceiling(terms: Sequence[WeightedTerm]) -> float:
    """More than any passage can score for these terms; above 0."""
    return SATURATED * sum(term.idf for term in terms) or 1.0


def absence(session: Session, terms: Sequence[WeightedTerm], total: int) -> float:
    """How much of a question (by weight, 0..1) stands nowhere in the library: it is about something else.

    0 where that tells nothing: less than a quarter of the question, a misspelt word (another begins like it), the name
    of a single thing (documents speak of its kind), a question of which much is unknown, as in another language, or a
    library of so few chunks (`total`) that common words are missing too.
    """
    if total < ABSENT_FROM:
        return 0.0
    missing = [term for term in terms if not term.chunks and not term.term.is_name]
    if not missing or len(missing) > ABSENT_WORDS or len(missing) * 2 > len(terms):
        return 0.0
    share = sum(term.idf for term in missing if not _is_misspelt(session, term)) / sum(term.idf for term in terms)
    return share if share >= ABSENT_SHARE else 0.0


def _is_misspelt(session: Session, missing: WeightedTerm) -> bool:
    stem = missing.term.stem
    begins = stem[: max(_BEGINNING, len(stem) - 2)]
    if len(stem) < _BEGINNING or any(character.isdigit() for character in stem):
        return False
    return bool(_BEGINNING_WITH.rows(session, {"first": begins, "last": begins + chr(0x10FFFF)}))


def search(session: Session, match: Match, scope: Scope, limit: int) -> dict[int, float]:
    """Ids of the visible chunks that fit with their BM25, best first, at most `limit`. All rows are ranked where a part
    of the library is asked, or where too few of the others are visible."""
    values = {"expression": match.expression, "most": limit, **scope.parameters()}
    if scope.filters == EVERYWHERE:
        rows = _SEARCH.rows(session, {**values, "reach": limit * REACH, "step": match.step})
        if len(rows) == limit:
            return {row.id: -row.bm25 for row in rows}
    return {row.id: -row.bm25 for row in _SEARCH.rows(session, {**values, "reach": _ALL, "step": 1})}


_ALL = -1
_BEST = (
    select(_FTS.c.rowid.label("id"), literal_column(f"bm25(chunks_fts, {COLUMN_WEIGHTS})", Float).label("bm25"))
    .where(
        _FTS.c.chunks_fts.op("MATCH")(bindparam("expression", type_=String)),
        _FTS.c.rowid % bindparam("step", type_=Integer) == 0,
    )
    .order_by(text("bm25"))
    .limit(bindparam("reach", type_=Integer))
    .subquery("best")
)
_SEARCH = Prepared(
    select(_BEST.c.id, _BEST.c.bm25)
    .where(select(Chunk.id).where(Chunk.id == _BEST.c.id, is_visible(Chunk.__table__.c.document_id)).exists())
    .limit(bindparam("most", type_=Integer))
)
"""The best rows come in order; each is looked up and tried until there are enough. The limit inside keeps SQLite from
trying every row before they are in order."""
