"""The full-text index `chunks_fts`: keeping it equal to the chunks.

Owns the rows of the index; what is asked of it is `app.search.words`. Called in the transaction that changes chunks,
path or title: `unindex` before the change (FTS5 must be told the very text it holds), `index` after it.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, text
from sqlalchemy.orm import Session

_BATCH = 5_000

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


def index_document(session: Session, document_id: int) -> None:
    """`index` for every chunk of a document."""
    session.execute(_INDEX_DOCUMENT, {"document": document_id})


def unindex(session: Session, document_id: int) -> None:
    """Takes every chunk of a document out of the index.

    To be called while the rows still say what was indexed: before chunks are deleted, before path or title change.
    """
    session.execute(_UNINDEX_DOCUMENT, {"document": document_id})


def rebuild(session: Session) -> None:
    """Builds the whole index anew from the chunks."""
    session.execute(text("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')"))
