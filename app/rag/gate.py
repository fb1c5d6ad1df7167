"""Retrieval and the decision that follows it: is there anything to answer from?

Always searches (unless the turn asked for no documents), so no question silently goes past the library. A turn is
*grounded* when the best passage reaches RETRIEVAL_MIN_SCORE, else *deflected*. Called once per turn by `app.api.chat`.
Which words are searched for is `follow_ups`' business; ranking and scores are `app.search`'s.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from anyio import to_thread

from app.errors import AppError
from app.rag.follow_ups import queries_for
from app.rag.prompts import PastTurn
from app.rag.turn import Mode
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store.engine import StoreError

NEAREST = 3


class Search(Protocol):
    """What the gate asks of `app.search.hybrid.Searcher`; blocking, so it is run in a thread."""

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        """The best `k` hits, best first."""
        ...


@dataclass(frozen=True, slots=True)
class Gate:
    """What retrieval found.

    Grounded: `hits` in rank order, at most RETRIEVAL_TOP_K, `nearest` empty. Deflected: `hits` empty, `nearest` the
    (at most three) highest scores. `searched` is the query as searched, empty where nothing was searched.
    """

    mode: Mode
    hits: tuple[Hit, ...]
    nearest: tuple[Hit, ...]
    top_score: float
    retrieval_ms: int
    searched: str


NOT_SEARCHED = Gate("deflected", (), (), 0.0, 0, "")
"""The gate of a turn that was asked to leave the documents out."""


class RetrievalError(AppError):
    """The library could not be searched."""

    default_code = "retrieval_failed"


async def retrieve(
    question: str,
    *,
    searcher: Search,
    user_id: int,
    settings: Settings,
    filters: SearchFilters,
    history: Sequence[PastTurn] = (),
) -> Gate:
    """Searches for `question`, read together with the questions before it (oldest first) where it leans on them.

    Raises:
        RetrievalError: when the search fails, whatever the reason.
    """
    started = time.perf_counter()
    queries = queries_for(question, history)
    searched, hits, top = queries[0], list[Hit](), 0.0
    for query in queries:
        found = await to_thread.run_sync(_search, searcher, query, user_id, settings.retrieval_top_k, filters)
        best = max((hit.score for hit in found), default=0.0)
        if not hits or best > top:
            searched, hits, top = query, found, best
        if top >= settings.retrieval_min_score:
            break
    grounded = bool(hits) and top >= settings.retrieval_min_score
    return Gate(
        mode="grounded" if grounded else "deflected",
        hits=tuple(hits) if grounded else (),
        nearest=() if grounded else tuple(sorted(hits, key=lambda hit: -hit.score)[:NEAREST]),
        top_score=top,
        retrieval_ms=round((time.perf_counter() - started) * 1000),
        searched=searched,
    )


def _search(searcher: Search, query: str, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
    try:
        return searcher.search(query, user_id=user_id, k=k, filters=filters)
    except (AppError, StoreError, OSError) as error:
        raise RetrievalError from error
