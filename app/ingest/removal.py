"""Taking documents' content out again: full-text rows, passages, vectors nobody else uses, jobs, rows.

Plain functions of a session, called inside a write transaction by `sources`, `watched`, `scan` and `pipeline`. Files on
disk are `app.ingest.stored_files`'; the resident vector index is told after the commit, with what these return.
"""

from collections.abc import Sequence

from app.search import fulltext
from app.store import chunks, intake, jobs, vectors
from app.store.engine import Session


def remove_content(session: Session, document_id: int) -> list[str]:
    """Takes passages, full-text rows and unused vectors of a document; returns the keys of the vectors."""
    fulltext.unindex(session, document_id)
    return vectors.delete_unused(session, chunks.drop_chunks(session, document_id))


def remove_documents(session: Session, document_ids: Sequence[int]) -> list[str]:
    """Takes whole documents, jobs and rows too; returns the keys of the vectors that went."""
    jobs.drop_of_documents(session, document_ids)
    gone = [sha for document_id in document_ids for sha in remove_content(session, document_id)]
    intake.drop_documents(session, document_ids)
    return gone
