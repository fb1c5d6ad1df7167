"""Asks a library the questions of a file, as a turn would, with the built-in answerer in the model's place.

Owns the run: finding the named documents in the library, the gate, what is given, the answer and the check of its
markers. Stores nothing. Scores are `app.rag.evaluation`'s; `docent eval` calls it.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from app.rag import citations
from app.rag.context import fit, pack, passages_of
from app.rag.evaluation import Outcome, Question
from app.rag.gate import Search, retrieve
from app.rag.pieces import ChatFn, Passage, StreamPiece
from app.rag.space import space_of
from app.search.hits import Hit, SearchFilters
from app.settings import Settings

_EVERYWHERE = SearchFilters()
_DEEP = 30
"""Passages that documents are ranked by: ten documents of three each."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run needs. `paths` are those of the library's documents; `budget` is how many tokens of passages count as
    given, measured by `count_tokens`."""

    searcher: Search
    user_id: int
    paths: Sequence[str]
    answer: ChatFn
    budget: int
    count_tokens: Callable[[str], int]


async def evaluate(questions: Sequence[Question], asked: Asked, settings: Settings) -> list[Outcome]:
    """One outcome per question, in order.

    Raises:
        RetrievalError: when the library can't be searched.
    """
    return [outcome async for outcome in outcomes(questions, asked, settings)]


async def outcomes(questions: Sequence[Question], asked: Asked, settings: Settings) -> AsyncGenerator[Outcome]:
    """The outcomes of `evaluate` as they come.

    Raises:
        RetrievalError: when the library can't be searched.
    """
    named = Names(asked.paths)
    for question in questions:
        yield await _outcome(question, asked, settings, named)


class Names:
    """The library's paths under the names that questions use: the same path, or one that ends with the other."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._by_end: dict[str, list[str]] = {}
        for path in paths:
            self._by_end.setdefault(PurePosixPath(path).name, []).append(path)

    def path_of(self, name: str) -> str | None:
        """The path that `name` means: the one with most in common; None where there is none, or two fit alike."""
        fitting = [path for path in self._by_end.get(PurePosixPath(name).name, ()) if _is_end(path, name)]
        longest = max((min(len(path), len(name)) for path in fitting), default=0)
        best = [path for path in fitting if min(len(path), len(name)) == longest]
        exact = [path for path in best if path == name]
        best = exact or best
        return best[0] if len(set(best)) == 1 else None

    def unknown(self, questions: Sequence[Question]) -> list[str]:
        """Documents that questions name and the library lacks, each once."""
        named = dict.fromkeys(name for question in questions for name in question.documents)
        return [name for name in named if self.path_of(name) is None]


def _is_end(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}")


async def _outcome(question: Question, asked: Asked, settings: Settings, named: Names) -> Outcome:
    gate = await retrieve(
        question.text,
        searcher=asked.searcher,
        user_id=asked.user_id,
        settings=settings,
        filters=_EVERYWHERE,
        history=question.history,
    )
    deep = await retrieve(
        gate.searched,
        searcher=asked.searcher,
        user_id=asked.user_id,
        settings=settings.model_copy(update={"retrieval_min_score": 0.0, "retrieval_top_k": _DEEP}),
        filters=_EVERYWHERE,
    )
    prompt = pack(gate, question.text, question.history, space_of(settings), documents=len(asked.paths))
    left_out = {passage.chunk_id for passage in prompt.left_out}
    taken = [hit for hit in gate.hits if hit.chunk_id not in left_out]
    _, given = fit(passages_of(taken), asked.budget, asked.count_tokens)
    answer = ""
    if gate.mode == "grounded":
        async for piece in asked.answer(prompt.messages, tools=None):
            answer += piece.text if isinstance(piece, StreamPiece) and piece.kind == "content" else ""
    check = citations.check(answer, prompt.passages)
    cited = {cite.n for cite in check.cites}
    return Outcome(
        question=question,
        ranked=_ranked(deep.hits, question, named),
        given=tuple(_said(passage) for passage in given),
        score=gate.top_score,
        grounded=gate.mode == "grounded",
        markers=check.valid + check.dropped,
        valid_markers=check.valid,
        cited=tuple(_said(passage) for passage in prompt.passages if passage.n in cited),
    )


def _ranked(hits: Sequence[Hit], question: Question, named: Names) -> tuple[str, ...]:
    called = {path: name for name in question.documents if (path := named.path_of(name)) is not None}
    return tuple(dict.fromkeys(called.get(passage.path, passage.path) for passage in passages_of(hits)))


def _said(passage: Passage) -> str:
    return f"{passage.heading} {passage.text}"
