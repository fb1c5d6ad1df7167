"""Hybrid search: full text and vectors, fused.

Owns the order of events of one search. Called by the retrieval gate, `POST /api/search` and `docent search`. Never
waits for ingest: what has no vector yet is found by its words, and where the embedder fails, words alone serve.
"""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from app.clock import Clock, SystemClock
from app.search import candidates
from app.search.candidates import Candidate
from app.search.embeddings import Embedder
from app.search.frequencies import Frequencies
from app.search.fusion import PER_DOCUMENT, Fused, fuse, score, spread
from app.search.generations import Embedders, embedders_of
from app.search.hits import EVERYWHERE, Hit, SearchFilters
from app.search.query_embedder import Meaning, QueryEmbedder
from app.search.scope import Scope, is_visible
from app.search.vectors import VectorIndex
from app.search.worded import Worded, by_words
from app.search.words import Words
from app.store.among import values_of
from app.store.engine import Database
from app.store.models import Chunk, Document
from app.store.prepared import Prepared
from app.store.vectors import ActiveGeneration, active_generation

__all__ = ["EVERYWHERE", "Hit", "SearchFilters", "Searcher"]

QUERIES_AT_ONCE = 4
"""Questions embedded side by side."""

SEARCHES_AT_ONCE = 8
"""Searches that may hold a database connection at the same time: half of the readers, so that a burst of questions on
a busy machine leaves connections for everything else."""

T = TypeVar("T")

_Found = tuple[Worded, Meaning | None, list[Candidate]]
"""What the words found, the question's vector, and what lies near it."""


class Searcher:
    """Finds the chunks that fit a question. Blocking and thread-safe; async callers use a worker thread.

    Args:
        embedder: Embeds questions: that of the generation that serves is taken. Where there is none, words alone serve.
        generation: Which one serves.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | Embedders,
        index: VectorIndex,
        *,
        clock: Clock | None = None,
        generation: Callable[[Session], ActiveGeneration | None] = active_generation,
    ) -> None:
        self._database = database
        self._index = index
        self._query_embedder = QueryEmbedder(embedders_of(embedder), clock or SystemClock())
        self._generation = generation
        self._served: ActiveGeneration | None = None
        self._words = Words()
        self._frequencies = Frequencies()
        self._places = threading.BoundedSemaphore(SEARCHES_AT_ONCE)
        self._pool = ThreadPoolExecutor(QUERIES_AT_ONCE, thread_name_prefix="docent-query")

    def search(self, query: str, *, user_id: int, k: int = 12, filters: SearchFilters = EVERYWHERE) -> list[Hit]:
        """At most `k` hits, best first, no text twice, and of one document no more than a few, unless `filters` names
        documents or nothing else is left."""
        scope = Scope(user_id, filters)
        looking = self._pool.submit(self._near, query, scope)
        worded = self._placed(lambda session: by_words(session, self._words, self._frequencies, query, scope))
        meaning, near = looking.result()
        return self._placed(lambda session: self._fused(session, (worded, meaning, near), scope, k))

    def _near(self, query: str, scope: Scope) -> tuple[Meaning | None, list[Candidate]]:
        """The question's vector and what lies nearest to it, on a thread of its own while words are looked up; no
        database session is held while it is embedded.

        It is embedded for the generation that served the last question: to ask first would take a transaction more.
        Where another one serves by now, it is embedded again.
        """
        served = self._served
        if served is not None:
            meaning = self._query_embedder.embed(query, served)
            serving, near = self._placed(partial(self._nearest, meaning=meaning, scope=scope))
            if serving == served:
                return meaning, near
        else:
            serving = self._database.read(self._generation)
        self._served = serving
        meaning = self._query_embedder.embed(query, serving)
        if meaning is None:
            return None, []
        return meaning, self._placed(lambda session: candidates.by_meaning(session, self._index, meaning, scope))

    def _nearest(
        self, session: Session, meaning: Meaning | None, scope: Scope
    ) -> tuple[ActiveGeneration | None, list[Candidate]]:
        """The generation that serves, and what lies near to a vector of it."""
        serving = self._generation(session)
        if meaning is None or meaning.generation != serving:
            return serving, []
        return serving, candidates.by_meaning(session, self._index, meaning, scope)

    def _placed(self, work: Callable[[Session], T]) -> T:
        with self._places:
            return self._database.read(work)

    def _fused(self, session: Session, found: _Found, scope: Scope, k: int) -> list[Hit]:
        worded, meaning, near = found
        chosen = {candidate.sha256: candidate for candidate in [*near, *worded.found]}
        vectors = self._index.vectors(session, meaning.generation, chosen) if meaning is not None else {}
        strengths = {one.sha256: one.strength for one in worded.found}
        asked = meaning.vector if meaning is not None else None
        floor = meaning.floor if meaning is not None else 0.0
        fused = fuse(strengths, [one.sha256 for one in near], vectors, asked, floor)
        documents = [chosen[one.key].document_id for one in fused]
        kept = [fused[place] for place in spread(documents, k, None if scope.is_narrow else PER_DOCUMENT)]
        ids = {chosen[one.key].chunk_id: one for one in kept}
        listed = {"ids": json.dumps(list(ids)), **scope.parameters()}
        rows = {row.chunk_id: row for row in _ROWS.rows(session, listed)}
        return self._hits([(rows[chunk_id], one) for chunk_id, one in ids.items() if chunk_id in rows], worded)

    def _hits(self, found: Sequence[tuple[Row[Any], Fused[str]]], worded: Worded) -> list[Hit]:
        passages = ["\n".join((row.path, row.title, row.heading, row.text)) for row, _ in found]
        standing = worded.standing(self._words, passages)
        return [
            Hit(
                *row,
                score=score(one.cosine, parts, worded.idf, worded.absent),
                fulltext_rank=one.fulltext_rank,
                vector_rank=one.vector_rank,
            )
            for (row, one), parts in zip(found, standing, strict=True)
        ]


_CHUNK, _DOCUMENT = Chunk.__table__.c, Document.__table__.c
_ROWS = Prepared(
    select(
        _CHUNK.id.label("chunk_id"),
        _CHUNK.document_id,
        _DOCUMENT.collection_id,
        _DOCUMENT.path,
        _DOCUMENT.title,
        *(_CHUNK[name] for name in ("heading", "page", "text", "char_start", "char_end", "line_start", "line_end")),
    )
    .join(Document.__table__, _DOCUMENT.id == _CHUNK.document_id)
    .where(_CHUNK.id.in_(values_of("ids")), is_visible(_CHUNK.document_id))
)
"""Visible still: since the words were looked up a document may have gone."""
