"""The trigram index `chunks_grams`: every three characters in a row of heading and text, for what no word index finds.

Owns its rows and the look-ups in it. `app.search.fulltext` keeps it in step in the same transactions; `backfill` makes
up for passages stored before there was one. It holds no positions, only which passage holds which three characters
(half the size, twice the speed): so a longer string is looked up by all its trigrams and then compared with the text,
and two characters by every trigram that begins with them. To let the last two count, two line ends follow the text.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, text
from sqlalchemy.orm import Session

from app.store.prepared import Prepared

POSTINGS = 12_000
"""Rows that the grams of one question may touch; the rarest first, the first in any case."""

LITERAL_ROWS = 5_000
"""Passages compared with a literal at most."""

LITERAL_GRAMS = 8
"""Trigrams of a literal that are looked up at most."""

_GRAM = 3
_BATCH = 5_000
_BEYOND = chr(0x10FFFF)
_COUNT = Prepared(text("SELECT coalesce(sum(doc), 0) FROM chunks_grams_terms WHERE term >= :first AND term <= :last"))
_HOLDERS = Prepared(text("SELECT DISTINCT doc FROM chunks_grams_places WHERE term >= :first AND term <= :last"))
_LITERAL = Prepared(
    text(
        "SELECT id FROM chunk_grams WHERE id IN "
        "(SELECT rowid FROM chunks_grams WHERE chunks_grams MATCH :expression LIMIT :most) "
        "AND instr(lower(text), :literal)"
    )
)
_LITERAL_AMONG = Prepared(
    text(
        "SELECT id FROM chunk_grams WHERE id IN "
        "(SELECT rowid FROM chunks_grams WHERE chunks_grams MATCH :expression "
        "AND +rowid IN (SELECT value FROM json_each(:ids)) LIMIT :most) "
        "AND instr(lower(text), :literal)"
    )
)
_LONG = Prepared(
    text(
        "SELECT id FROM chunks WHERE id IN (SELECT rowid FROM chunks_grams WHERE chunks_grams MATCH :expression) "
        "AND instr(lower(text), :part)"
    )
)
_SHORT = Prepared(
    text(
        "SELECT id FROM chunks WHERE id IN "
        "(SELECT doc FROM chunks_grams_places WHERE term >= :first AND term <= :last) AND instr(lower(text), :part)"
    )
)
_LEFT = text("SELECT (SELECT count(*) FROM chunks) - (SELECT count(*) FROM chunks_grams_docsize)")

_INDEX = text(
    "INSERT INTO chunks_grams(rowid, text) SELECT id, text FROM chunk_grams "
    "WHERE id IN :ids AND id NOT IN (SELECT id FROM chunks_grams_docsize WHERE id IN :ids)"
).bindparams(bindparam("ids", expanding=True))
_INDEX_DOCUMENT = text(
    "INSERT INTO chunks_grams(rowid, text) SELECT id, text FROM chunk_grams "
    "WHERE id IN (SELECT id FROM chunks WHERE document_id = :document) "
    "AND id NOT IN (SELECT id FROM chunks_grams_docsize)"
)
_UNINDEX_DOCUMENT = text(
    "INSERT INTO chunks_grams(chunks_grams, rowid, text) SELECT 'delete', id, text FROM chunk_grams "
    "WHERE id IN (SELECT id FROM chunks WHERE document_id = :document) "
    "AND id IN (SELECT id FROM chunks_grams_docsize)"
)
_BACKFILL = text(
    "INSERT INTO chunks_grams(rowid, text) SELECT id, text FROM chunk_grams "
    "WHERE id IN (SELECT id FROM chunks WHERE id NOT IN (SELECT id FROM chunks_grams_docsize) LIMIT :most)"
)


def index(session: Session, chunk_ids: Sequence[int]) -> None:
    """Makes chunks findable by parts of words; those already in the index are left alone."""
    for start in range(0, len(chunk_ids), _BATCH):
        session.execute(_INDEX, {"ids": list(chunk_ids[start : start + _BATCH])})


def index_document(session: Session, document_id: int) -> None:
    """`index` for every chunk of a document."""
    session.execute(_INDEX_DOCUMENT, {"document": document_id})


def unindex(session: Session, document_id: int) -> None:
    """Takes every chunk of a document out of the index. To be called before chunks are deleted."""
    session.execute(_UNINDEX_DOCUMENT, {"document": document_id})


def rebuild(session: Session) -> None:
    """Builds the whole index anew from the chunks."""
    session.execute(text("INSERT INTO chunks_grams(chunks_grams) VALUES ('rebuild')"))


def check(session: Session) -> None:
    """Compares the whole index with the passages. Needs a session that may write, and writes nothing; of no use while
    `left` is not 0.

    Raises:
        StoreError: when they differ.
    """
    session.execute(text("INSERT INTO chunks_grams(chunks_grams, rank) VALUES ('integrity-check', 1)"))


def left(session: Session) -> int:
    """How many chunks the index does not know yet."""
    return max(0, int(session.execute(_LEFT).scalar_one()))


def backfill(session: Session, most: int) -> int:
    """Indexes at most `most` chunks that were stored before there was this index; returns how many are left."""
    waiting = left(session)
    if waiting:
        session.execute(_BACKFILL, {"most": most})
    return max(0, waiting - most)


@dataclass(frozen=True, slots=True)
class WeightedGram:
    """A gram of the question as this library knows it."""

    gram: str
    chunks: int
    idf: float


def weigh(session: Session, grams: Sequence[str], total: int) -> list[WeightedGram]:
    """Each gram with about how many of `total` chunks hold it, and its idf, above 0."""
    counts = [min(total, int(_COUNT.rows(session, _range(gram))[0][0])) for gram in grams]
    return [WeightedGram(gram, count, idf(count, total)) for gram, count in zip(grams, counts, strict=True)]


def holders(session: Session, grams: Sequence[WeightedGram]) -> dict[int, float]:
    """By chunk the idf of all the grams that stand in it, as far as `POSTINGS` reach."""
    sums: dict[int, float] = {}
    postings = 0
    for weighted in sorted((one for one in grams if one.chunks), key=lambda one: one.chunks):
        postings += weighted.chunks
        if sums and postings > POSTINGS:
            break
        for row in _HOLDERS.rows(session, _range(weighted.gram)):
            sums[row[0]] = sums.get(row[0], 0.0) + weighted.idf
    return sums


def holding(session: Session, literal: str, among: Collection[int] | None = None) -> list[int]:
    """The chunks that hold a string of three characters or more (folded by `fragments.fold`); only those of `among`, if
    given."""
    values = {"expression": _expression(literal), "literal": literal, "most": LITERAL_ROWS}
    if among is None:
        return [row[0] for row in _LITERAL.rows(session, values)]
    return [row[0] for row in _LITERAL_AMONG.rows(session, {**values, "ids": json.dumps(list(among))})]


def in_text(session: Session, part: str) -> set[int]:
    """Every chunk whose own text, heading aside, holds a string (folded by `fragments.fold`)."""
    if len(part) < _GRAM:
        return {row[0] for row in _SHORT.rows(session, {**_range(part), "part": part})}
    return {row[0] for row in _LONG.rows(session, {"expression": _expression(part), "part": part})}


def _expression(literal: str) -> str:
    """What a chunk has to hold to hold `literal`: its trigrams, of a long one as many from its whole length. Each costs
    its whole list, and the text is compared anyway."""
    last = len(literal) - _GRAM
    count = min(last + 1, LITERAL_GRAMS)
    places = [last * number // max(1, count - 1) for number in range(count)]
    trigrams = dict.fromkeys(literal[at : at + _GRAM] for at in places)
    return " AND ".join('"' + one.replace('"', '""') + '"' for one in trigrams)


def idf(count: int, total: int) -> float:
    """How much a part tells that stands in `count` of `total` chunks; above 0."""
    count = min(count, total)
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _range(gram: str) -> Mapping[str, str]:
    """A whole trigram, or all that begin with fewer characters."""
    return {"first": gram, "last": gram if len(gram) >= _GRAM else gram + _BEYOND}
