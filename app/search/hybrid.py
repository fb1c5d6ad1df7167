"""Hybrid search: full text and vectors, fused.

Owns the order of events of one search. Called by the retrieval gate, `POST /api/search` and `docent search`. Never
waits for ingest: what has no vector yet is found by its words, and where the embedder fails, words alone serve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Clock, SystemClock
from app.search import candidates, fulltext
from app.search.embeddings import Embedder
from app.search.fulltext import WeightedTerm
from app.search.fusion import PER_DOCUMENT, Fused, fuse, score, spread
from app.search.hits import Hit, SearchFilters
from app.search.query_embedder import Meaning, QueryEmbedder
from app.search.scope import visible_documents
from app.search.vectors import VectorIndex
from app.search.words import Words
from app.store.among import among
from app.store.engine import Database
from app.store.models import Chunk, Document
from app.store.vectors import active_generation

__all__ = ["EVERYWHERE", "Hit", "SearchFilters", "Searcher"]

EVERYWHERE = SearchFilters()


@dataclass(frozen=True, slots=True)
class _Request:
    query: str
    user_id: int
    k: int
    filters: SearchFilters
    meaning: Meaning | None


class Searcher:
    """Finds the chunks that fit a question. Blocking and thread-safe; async callers use a worker thread.

    Args:
        embedder: Embeds questions. It has to be the one that embeds passages: where its model is not that of the stored
            vectors, words alone serve.
    """

    def __init__(
        self, database: Database, embedder: Embedder, index: VectorIndex, *, clock: Clock | None = None
    ) -> None:
        self._database = database
        self._index = index
        self._query_embedder = QueryEmbedder(embedder, clock or SystemClock())
        self._words = Words()

    def search(self, query: str, *, user_id: int, k: int = 12, filters: SearchFilters = EVERYWHERE) -> list[Hit]:
        """At most `k` hits, best first, no text twice, and of one document no more than a few, unless `filters` names
        documents or nothing else is left."""
        meaning = self._query_embedder.embed(query, self._database.read(active_generation))
        request = _Request(query, user_id, k, filters, meaning)
        return self._database.read(lambda session: self._find(session, request))

    def _find(self, session: Session, request: _Request) -> list[Hit]:
        visible = visible_documents(request.user_id, request.filters)
        narrow = request.filters.documents is not None
        total = fulltext.size(session)
        terms = fulltext.weigh(session, self._words.question_terms(request.query), total)
        found = candidates.by_words(session, fulltext.match_expression(terms, total), visible)
        worded = [candidate.sha256 for candidate in found]
        near: list[str] = []
        if request.meaning is not None:
            generation, vector = request.meaning.generation, request.meaning.vector
            nearest = candidates.by_meaning(session, self._index, generation, vector, visible, narrow=narrow)
            near = [candidate.sha256 for candidate in nearest]
            found += nearest
        chosen = {candidate.sha256: candidate for candidate in reversed(found)}
        fused = fuse(worded, near)
        documents = [chosen[one.key].document_id for one in fused]
        kept = [fused[place] for place in spread(documents, request.k, None if narrow else PER_DOCUMENT)]
        ids = [chosen[one.key].chunk_id for one in kept]
        return self._hits(session, dict(zip(ids, kept, strict=True)), terms, request.meaning)

    def _hits(
        self,
        session: Session,
        kept: dict[int, Fused[str]],
        terms: Sequence[WeightedTerm],
        meaning: Meaning | None,
    ) -> list[Hit]:
        rows = {row["chunk_id"]: row for row in session.execute(_ROWS.where(among(Chunk.id, kept))).mappings()}
        passages = ["\n".join(rows[chunk_id][column] for column in _SEARCHED) for chunk_id in kept]
        idf = {term.term.stem: term.idf for term in terms}
        standing = self._words.standing(list(idf), passages)
        cosines: dict[str, float] = {}
        if meaning is not None:
            shas = [one.key for one in kept.values()]
            cosines = self._index.cosines(session, meaning.generation, meaning.vector, shas)
        return [
            Hit(
                **rows[chunk_id],
                score=score(cosines.get(one.key), stems, idf),
                fulltext_rank=one.fulltext_rank,
                vector_rank=one.vector_rank,
            )
            for (chunk_id, one), stems in zip(kept.items(), standing, strict=True)
        ]


_SEARCHED = ("path", "title", "heading", "text")

_ROWS = select(
    Chunk.id.label("chunk_id"),
    Chunk.document_id,
    Document.collection_id,
    Document.path,
    Document.title,
    Chunk.heading,
    Chunk.page,
    Chunk.text,
    Chunk.char_start,
    Chunk.char_end,
    Chunk.line_start,
    Chunk.line_end,
).join(Document, Document.id == Chunk.document_id)
