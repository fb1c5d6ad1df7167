"""A small library for the tests of search: documents and chunks put straight into the tables."""

import hashlib
from datetime import UTC, datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.ingest.chunking import CHUNKER_VERSION
from app.search import fulltext
from app.search.embeddings import Embedder
from app.store import vectors
from app.store.engine import Database
from app.store.models import Chunk, Collection, Document, User

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def add_user(session: Session, user_id: int, collection_id: int) -> None:
    """A user with one collection."""
    session.add(User(id=user_id, username=f"u{user_id}", display_name="U", role="user", created_at=NOW))
    session.flush()
    session.add(
        Collection(
            id=collection_id,
            owner_id=user_id,
            name=f"c{collection_id}",
            slug=f"c{collection_id}",
            kind="library",
            created_at=NOW,
        )
    )
    session.flush()


def add_document(
    session: Session, path: str, *passages: str, title: str = "", collection_id: int = 1, status: str = "ready"
) -> int:
    """A document whose passages stand one after the other, a blank line between; indexed, not embedded."""
    document = Document(
        collection_id=collection_id,
        source="upload",
        path=path,
        title=title,
        mime="text/plain",
        sha256="0" * 64,
        bytes=1,
        status=status,
        created_at=NOW,
        updated_at=NOW,
        text="\n\n".join(passages),
    )
    session.add(document)
    session.flush()
    start = 0
    for ordinal, passage in enumerate(passages):
        session.add(
            Chunk(
                document_id=document.id,
                ordinal=ordinal,
                heading="",
                text=passage,
                char_start=start,
                char_end=start + len(passage),
                page=None,
                line_start=2 * ordinal + 1,
                line_end=2 * ordinal + 1,
                sha256=hashlib.sha256(f"{title}\n{passage}".encode()).hexdigest(),
            )
        )
        start += len(passage) + 2
    session.flush()
    fulltext.index_document(session, document.id)
    return document.id


def embed_all(database: Database, embedder: Embedder) -> None:
    """Vectors for every chunk that has none."""

    def work(session: Session) -> None:
        generation = vectors.ensure_generation(session, embedder.model, embedder.dim, str(CHUNKER_VERSION), NOW)
        for document_id in vectors.unembedded_documents(session, generation.id):
            shas = vectors.missing_shas(session, generation.id, document_id)
            texts = dict(session.query(Chunk.sha256, Chunk.text).filter(Chunk.sha256.in_(shas)))
            matrix = embedder.embed_passages([texts[sha] for sha in shas])
            vectors.add_vectors(session, generation.id, shas, matrix)

    database.write(work)


def check_index(database: Database) -> None:
    """Fails when the full-text index does not equal the chunks."""
    database.write(
        lambda session: session.execute(text("INSERT INTO chunks_fts(chunks_fts, rank) VALUES ('integrity-check', 1)"))
    )
