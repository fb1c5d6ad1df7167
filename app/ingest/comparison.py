"""Two generations on the questions that were asked: before a switch, what would be found, and what would not.

Owns asking each question of both and counting: for how many a passage that the answer cited is among the first 5 and
12, for how many the first passage is the same. The cited passages were found by the generation that serves, which
favours it; the page says so. Each generation searches with its own embedder and its own vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.clock import Clock
from app.ingest.yielding import Yielding
from app.search.embeddings import Embedder, FloatMatrix, FloatVector, floor_of
from app.search.errors import EmbedError
from app.search.hits import Hit
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store import asked_questions
from app.store.asked_questions import AskedQuestion, Source
from app.store.engine import Database, Session
from app.store.vectors import ActiveGeneration

QUESTIONS = 50
DEPTHS = (5, 12)
SHOWN = 8
"""Questions told that differ in their first passage."""

Side = tuple[ActiveGeneration | None, Embedder | None]
"""A generation and its embedder."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a generation found for a question: keys of passages, best first, and how the first one is called."""

    shas: tuple[str, ...]
    first: str


class Comparer:
    """Compares. Belongs to the embedding lane.

    Args:
        index: The resident index, for the generation that serves; the other one's vectors are read for the comparison.
        sources: Where questions come from, those of the first one first.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        yielding: Yielding,
        index: VectorIndex,
        sources: Sequence[Source] = (asked_questions.from_saved, asked_questions.from_log),
    ) -> None:
        self._database = database
        self._clock = clock
        self._yielding = yielding
        self._index = index
        self._sources = sources

    def compare(self, old: Side, new: Side) -> dict[str, Any] | None:
        """What is stored as `generations.compared` (see `summary`); None when the process wants to end."""
        questions = self._database.read(self._questions)
        if not questions:
            return summary([], self._clock)
        pair = [_Asking(self._database, side, index) for side, index in ((old, self._index), (new, VectorIndex()))]
        asked: list[tuple[AskedQuestion, Found, Found]] = []
        try:
            for question in questions:
                if not self._yielding.give_way():
                    return None
                before, after = (one.ask(question) for one in pair)
                asked.append((question, before, after))
        except EmbedError as error:
            return summary([], self._clock, error.code)
        return summary(asked, self._clock)

    def _questions(self, session: Session) -> list[AskedQuestion]:
        found: dict[tuple[int, str], AskedQuestion] = {}
        for source in self._sources:
            for question in source(session, QUESTIONS):
                found.setdefault((question.user_id, question.question.casefold().strip()), question)
        return list(found.values())[:QUESTIONS]


def summary(
    asked: Sequence[tuple[AskedQuestion, Found, Found]], clock: Clock, problem: str | None = None
) -> dict[str, Any]:
    """The numbers, each with what it is out of, and the questions whose first passage differs.

    `{at, problem, asked, cited, old: {"5": n, "12": n}, new: …, same_first, differ}`, and of `differ` each
    `{user, question, old, new, lost}`: `cited` is how many questions have a cited passage that is still there, the
    denominator of `old` and `new`; `lost` says that only the old one has it among the first 12.
    """
    judged = [entry for entry in asked if entry[0].cited]
    differing = [entry for entry in asked if entry[1].shas[:1] != entry[2].shas[:1]]
    told = [
        {
            "user": question.user_id,
            "question": question.question[:300],
            "old": before.first,
            "new": after.first,
            "lost": _has(question, before, DEPTHS[-1]) and not _has(question, after, DEPTHS[-1]),
        }
        for question, before, after in differing
    ]
    return {
        "at": clock.now().isoformat(),
        "problem": problem,
        "asked": len(asked),
        "cited": len(judged),
        "old": {str(depth): sum(_has(question, before, depth) for question, before, _ in judged) for depth in DEPTHS},
        "new": {str(depth): sum(_has(question, after, depth) for question, _, after in judged) for depth in DEPTHS},
        "same_first": len(asked) - len(differing),
        "differ": sorted(told, key=lambda entry: not entry["lost"])[:SHOWN],
    }


class _Asking:
    """A search with one generation, whose embedder's failures are not passed over."""

    def __init__(self, database: Database, side: Side, index: VectorIndex) -> None:
        generation, embedder = side
        if generation is None or embedder is None:
            self._searcher = None
            return
        self._database = database
        self._strict = _Strict(embedder)
        self._searcher = Searcher(database, self._strict, index, generation=lambda _: generation)

    def ask(self, question: AskedQuestion) -> Found:
        """Raises:
        EmbedError: when the embedder can't be had: found by words alone, it would say nothing of the vectors.
        """
        if self._searcher is None:
            raise EmbedError
        hits = self._searcher.search(question.question, user_id=question.user_id, k=DEPTHS[-1])
        if self._strict.failed is not None:
            raise self._strict.failed
        shas = self._database.read(lambda session: asked_questions.shas_of(session, [hit.chunk_id for hit in hits]))
        found = [hit for hit in hits if hit.chunk_id in shas]
        return Found(tuple(shas[hit.chunk_id] for hit in found), _name(found[0]) if found else "")


class _Strict:
    """An embedder that remembers its failure."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.failed: EmbedError | None = None

    @property
    def model(self) -> str:
        """As the embedder."""
        return self._embedder.model

    @property
    def dim(self) -> int:
        """As the embedder."""
        return self._embedder.dim

    @property
    def floor(self) -> float | None:
        """As the embedder."""
        return floor_of(self._embedder)

    def embed_query(self, text: str) -> FloatVector:
        """As the embedder."""
        try:
            return self._embedder.embed_query(text)
        except EmbedError as error:
            self.failed = error
            raise

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """As the embedder."""
        return self._embedder.embed_passages(texts)

    def close(self) -> None:
        """The embedder goes on living."""


def _has(question: AskedQuestion, found: Found, depth: int) -> bool:
    return not question.cited.isdisjoint(found.shas[:depth])


def _name(hit: Hit) -> str:
    return f"{hit.title or hit.path} › {hit.heading}" if hit.heading else hit.title or hit.path
