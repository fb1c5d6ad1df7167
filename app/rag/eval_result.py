"""What an evaluation of the saved questions leaves: figures of each settings and how each question fared. Pure.

Owns how a saved question becomes one of `app.rag.evaluation`, and the JSON of a result:

    {k, budget_tokens, answerer, left_out, without_words,
     sides: [{settings: {…}, groups: {group: {measure: {total, of}}}}],
     questions: [{id, sides: [fate]}]}

A fate is `passage` (the right passage was given), `document` (the right document was among the first k), `missed`,
`deflected` (though the documents say), or of a question they don't answer `refused` and `answered`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.rag.evaluation import Outcome, Question, groups, holds_expected, measures, recall_at
from app.rag.prompts import PastTurn
from app.settings import Settings
from app.store.eval_questions import EvalQuestion

Fate = Literal["passage", "document", "missed", "deflected", "refused", "answered"]

WORTH: Mapping[str, int] = {"passage": 3, "document": 2, "missed": 1, "deflected": 0, "refused": 1, "answered": 0}
"""Which of two fates of a question is the better one."""

K = 5
BUDGET_TOKENS = 3_000

MEASURES: Mapping[str, str] = {
    f"document recall@{K}": "recall",
    "document MRR": "mrr",
    "document nDCG@10": "ndcg",
    "passage given": "given",
    "answerable deflected": "lost",
    "deflection recall": "deflection_recall",
    "deflection precision": "deflection_precision",
    "valid citations": "valid",
    "right passage cited": "cited",
}
"""Names of `evaluation.measures` and what results and pages call them, in the order of a page."""

COMPARABLE = ("retrieval_top_k", "retrieval_min_score", "llm_context_tokens", "words_only")
"""What the second settings of a run may change."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the settings that were compared, and what each question got with it."""

    settings: Mapping[str, Any]
    outcomes: Sequence[Outcome]


def settings_of(settings: Settings, *, words_only: bool) -> dict[str, Any]:
    """The settings of a side, as its result names them."""
    return {**{name: getattr(settings, name) for name in COMPARABLE[:-1]}, "words_only": words_only}


def as_question(saved: EvalQuestion) -> Question:
    """A saved question as the evaluation asks it: documents and passages that are still there."""
    there = [(passage, place) for passage, place in zip(saved.passages, saved.places, strict=True) if place.document_id]
    return Question(
        id=str(saved.id),
        text=saved.question,
        kind=saved.kind,
        group="saved",
        documents=tuple(dict.fromkeys(passage.path for passage, _ in there)),
        passages=tuple(passage.quote for passage, place in there if passage.quote and place.in_text),
        needs_all=saved.needs_all,
        history=tuple(PastTurn(past.question, past.answer) for past in saved.history),
    )


def as_result(sides: Sequence[Side], left_out: Sequence[EvalQuestion], questions: Sequence[Question]) -> dict[str, Any]:
    """The JSON of a run over `questions`; `left_out` are those whose documents are gone."""
    return {
        "k": K,
        "budget_tokens": BUDGET_TOKENS,
        "answerer": "builtin",
        "left_out": len(left_out),
        "without_words": sum(bool(question.documents) and not question.passages for question in questions),
        "sides": [{"settings": dict(side.settings), "groups": _figures(side.outcomes)} for side in sides],
        "questions": [
            {"id": int(question.id), "sides": [fate(side.outcomes[at]) for side in sides]}
            for at, question in enumerate(questions)
        ],
    }


def fate(outcome: Outcome) -> Fate:
    """How a question fared."""
    question = outcome.question
    if not question.documents:
        return "answered" if outcome.grounded else "refused"
    if not outcome.grounded:
        return "deflected"
    if question.passages and holds_expected(outcome.given, question):
        return "passage"
    return "document" if recall_at(outcome, K) else "missed"


def _figures(outcomes: Sequence[Outcome]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        group: {MEASURES[one.name]: {"total": round(one.total, 4), "of": one.of} for one in measures(some, K)}
        for group, some in groups(outcomes).items()
    }
