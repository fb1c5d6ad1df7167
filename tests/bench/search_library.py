"""Real document sets as a filled database, for the search benchmarks.

Goes through the real chunker, tables, full-text index and vector store; only jobs and the child process are left out,
since no benchmark here times them.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app.ingest.blocks import Extraction
from app.ingest.chunking import CHUNKER_VERSION, ChunkDraft, chunk, embedded_text
from app.ingest.extract.decode import decode
from app.ingest.extract.html import extract_html
from app.ingest.extract.markdown import extract_markdown
from app.ingest.extract.plain import extract_plain
from app.ingest.extract.rst import extract_rst
from app.search import fulltext
from app.search.embeddings import Embedder
from app.store import vectors
from app.store.engine import Database
from app.store.models import Chunk, Document

SHARED = Path(__file__).resolve().parents[3] / "shared"
HOMELAB = SHARED / "corpus"
SCIFACT = SHARED / "ir" / "scifact"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Source:
    """A document, cut."""

    path: str
    title: str
    chunks: Sequence[ChunkDraft]


def homelab() -> Iterator[Source]:
    """The documents of the homelab corpus, paths as in `questions.jsonl`; licence files count as documents too."""
    for path in sorted((HOMELAB / "homelab").rglob("*")):
        if path.is_file():
            extraction = _extract(path)
            yield Source(str(path.relative_to(HOMELAB)), extraction.title or path.stem, chunk(extraction))


def scifact() -> Iterator[Source]:
    """The abstracts of SciFact, paths are their ids."""
    with gzip.open(SCIFACT / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            extraction = extract_plain(record["text"], "utf-8", "abstract.txt")
            titled = Extraction(
                extraction.text, record["title"], "text/plain", "utf-8", None, extraction.text_yield, extraction.blocks
            )
            yield Source(record["_id"], record["title"], chunk(titled))


def questions() -> list[dict[str, Any]]:
    """The questions on the homelab corpus."""
    return [json.loads(line) for line in (HOMELAB / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def fill(database: Database, sources: Iterable[Source], embedder: Embedder | None) -> int:
    """Stores, indexes and (with an embedder) embeds; returns the number of chunks."""
    stored = 0
    sources = iter(sources)
    while batch := list(islice(sources, 50)):
        chunks = database.write(lambda session, batch=batch: _store(session, batch))
        stored += len(chunks)
        if embedder is not None:
            _embed(database, embedder, dict(chunks))
    return stored


def _embed(database: Database, embedder: Embedder, texts: dict[str, str]) -> None:
    matrix = embedder.embed_passages(list(texts.values()))

    def add(session: Session) -> None:
        generation = vectors.ensure_generation(session, embedder.model, embedder.dim, str(CHUNKER_VERSION), NOW)
        vectors.add_vectors(session, generation.id, list(texts), matrix)

    database.write(add)


def _store(session: Session, batch: Sequence[Source]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for source in batch:
        document = Document(
            collection_id=1,
            source="upload",
            path=source.path,
            title=source.title,
            mime="text/plain",
            sha256="0" * 64,
            bytes=0,
            status="ready",
            created_at=NOW,
            updated_at=NOW,
        )
        session.add(document)
        session.flush()
        rows = [_row(document.id, draft) for draft in source.chunks]
        if rows:
            session.execute(insert(Chunk), rows)
        fulltext.index_document(session, document.id)
        texts += [(draft.sha256, embedded_text(source.title, draft.heading, draft.text)) for draft in source.chunks]
    return texts


def _row(document_id: int, draft: ChunkDraft) -> dict[str, Any]:
    names = ("ordinal", "heading", "text", "char_start", "char_end", "page", "line_start", "line_end", "sha256")
    return {"document_id": document_id, **{name: getattr(draft, name) for name in names}}


def _extract(path: Path) -> Extraction:
    data = path.read_bytes()
    if path.suffix == ".html":
        return extract_html(data)
    text, encoding = decode(data)
    if path.suffix in (".md", ".mdx"):
        return extract_markdown(text, encoding)
    if path.suffix == ".rst":
        return extract_rst(text, encoding)
    return extract_plain(text, encoding, path.name)
