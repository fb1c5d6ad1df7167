"""Retrieval and the decision that follows it: is there anything to answer from?

Always searches (unless the turn asked for no documents), so no question silently goes past the library. A turn is
*grounded* when the best passage reaches RETRIEVAL_MIN_SCORE, else *deflected*. Called once per turn by `app.api.chat`.
Owns which words are searched for; ranking and scores are `app.search`'s.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from anyio import to_thread

from app.errors import AppError
from app.rag.prompts import PastTurn
from app.rag.turn import Mode
from app.rag.words import content_words
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store.engine import StoreError

NEAREST = 3
_PAST_QUESTIONS = 2
_PAST_CHARS = 400


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


_OPENER = re.compile(
    r"\W*(?:(?:and|but|so|also|then|or|ok(?:ay)?|what about|how about|what if|"
    r"und|aber|auch|oder|was ist mit|y|pero|et|mais)\b|(?:why|why not|warum)\W*$|那)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|he|she|him|her|the same|the former|the latter|the other one|"
    r"dies|dieses|ihn|ihm|dafür|damit|davon|darin|eso|esto|ello|cela)\b|它|这个|那个",
    re.IGNORECASE,
)
_POINTER = re.compile(r"\b(?:this|that|these|those|there|then|instead|otherwise|one|ones|das|es)\b", re.IGNORECASE)
_POINTER_WORDS = 12
"""In a longer question "that" is more often a conjunction than a pointer to what was said before."""
_SHORT_WORDS = 2


def leans(question: str) -> bool:
    """Whether `question` reads as the continuation of a talk: it opens with "and" or the like, holds a pronoun, points
    at something (only in a question of up to 12 words), or has at most two content words."""
    if _OPENER.match(question) or _PRONOUN.search(question):
        return True
    short = len(question.split()) <= _POINTER_WORDS
    return (short and _POINTER.search(question) is not None) or _is_short(question)


def _is_short(question: str) -> bool:
    return len({word.start for word in content_words(question)}) <= _SHORT_WORDS


def queries_for(question: str, history: Sequence[PastTurn]) -> list[str]:
    """What to search for, the first being the one to prefer; the next is tried when nothing close enough was found.

    A question that leans on what came before is searched with the questions it leans on: the last one, and the one
    before that too if the last one leans itself.
    """
    if not history or not leans(question):
        return [question]
    past: list[str] = []
    for turn in reversed(history[-_PAST_QUESTIONS:]):
        past.insert(0, turn.question.strip()[:_PAST_CHARS])
        if not leans(turn.question):
            break
    together = " ".join([*past, question])
    return [together] if _is_short(question) and _OPENER.match(question) else [together, question]
