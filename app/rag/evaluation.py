"""How well questions were answered from a library: their format, and the scores. Pure.

Owns the line format of a questions file and every measure of `docent eval`; runs nothing (`app.rag.evaluate` does) and
prints nothing (`app.rag.eval_report` does). The search benchmark uses the same scores.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from app.rag.prompts import PastTurn

_BLANK = re.compile(r"\s+")
_MARKUP = re.compile(r"[*_`]")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and where its answer stands. Without `documents` the library holds no answer.

    `passages` stand in `documents`: with `needs_all` one in each, all of them needed, else any one of them will do.
    `group` is the set it belongs to.
    """

    id: str
    text: str
    kind: str
    group: str
    documents: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    needs_all: bool = False
    history: tuple[PastTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a question got.

    `ranked` are the documents in the order of their best passages, under the names that the question uses where it
    names them; `given` the text of each passage that the model is given; `score` the best passage's; `markers` and
    `valid_markers` count those of the built-in answer, `cited` is the text of the passages it cites.
    """

    question: Question
    ranked: tuple[str, ...]
    given: tuple[str, ...]
    score: float
    grounded: bool
    markers: int = 0
    valid_markers: int = 0
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """A mean with its denominator; `value` is None where nothing was counted."""

    name: str
    total: float
    of: int

    @property
    def value(self) -> float | None:
        """The mean."""
        return self.total / self.of if self.of else None


def parse_questions(lines: Iterable[str], group: str) -> list[Question]:
    """The questions of a JSON Lines file, blank lines left out. `group` names those that name no `set` of their own.

    Raises:
        ValueError: with the line's number, for a line that is no question.
    """
    found: list[Question] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_question(json.loads(line), group, number))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"line {number}: {error!r}") from error
    return found


def _question(record: Any, group: str, number: int) -> Question:
    if not isinstance(record, dict):
        raise TypeError("not an object")
    fields = cast("dict[str, Any]", record)
    text = str(fields["question"]).strip()
    if not text:
        raise ValueError("the question is empty")
    several: list[str] = list(fields.get("answer_passages") or ())
    one = fields.get("answer_passage")
    turns: list[Mapping[str, str]] = list(fields.get("history") or ())
    return Question(
        id=str(fields.get("id", number)),
        text=text,
        kind=str(fields.get("kind", "question")),
        group=str(fields.get("set", group)),
        documents=tuple(str(path) for path in fields.get("answer_docs") or ()),
        passages=tuple(several) if several else (str(one),) if one else (),
        needs_all=bool(several) and fields.get("needs") != "any",
        history=_past(turns),
    )


def _past(turns: Sequence[Mapping[str, str]]) -> tuple[PastTurn, ...]:
    """Questions with the answer that follows each."""
    past: list[PastTurn] = []
    for turn in turns:
        if turn["role"] == "user":
            past.append(PastTurn(turn["content"], ""))
        elif past and turn["role"] == "assistant":
            past[-1] = PastTurn(past[-1].question, turn["content"])
    return tuple(past)


def recall_at(outcome: Outcome, k: int) -> bool:
    """Whether a right document is among the first `k` (every one of them, where all are needed)."""
    wanted, first = set(outcome.question.documents), set(outcome.ranked[:k])
    return wanted <= first if outcome.question.needs_all else bool(wanted & first)


def reciprocal_rank(outcome: Outcome) -> float:
    """1 over the place of the first right document, 0 without one."""
    wanted = outcome.question.documents
    return next((1 / place for place, name in enumerate(outcome.ranked, 1) if name in wanted), 0.0)


def ndcg(outcome: Outcome, k: int = 10) -> float:
    """Normalised discounted cumulative gain of the first `k` documents; every right document counts alike."""
    grades = dict.fromkeys(outcome.question.documents, 1)
    return graded_ndcg(outcome.ranked, grades, k)


def graded_ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int = 10) -> float:
    """`ndcg` where documents are right to a degree."""
    gain = sum(grades.get(name, 0) / math.log2(place + 2) for place, name in enumerate(ranked[:k]))
    best = sorted(grades.values(), reverse=True)[:k]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    return gain / ideal if ideal else 0.0


def holds_passages(texts: Iterable[str], passages: Sequence[str]) -> bool:
    """Whether each of `passages` stands in one of `texts`, markup and white space aside."""
    plain_texts = [plain(text) for text in texts]
    return all(any(plain(passage) in text for text in plain_texts) for passage in passages)


def holds_expected(texts: Iterable[str], question: Question) -> bool:
    """Whether the right passage stands in `texts`, or each one where all are needed."""
    if question.needs_all:
        return holds_passages(texts, question.passages)
    known = list(texts)
    return any(holds_passages(known, [passage]) for passage in question.passages)


def plain(text: str) -> str:
    """Without emphasis and code marks, each run of white space one blank."""
    return _BLANK.sub(" ", _MARKUP.sub("", text)).strip()


def measures(outcomes: Sequence[Outcome], k: int) -> list[Measure]:
    """Every measure over these outcomes, those of nothing left out."""
    answerable = [outcome for outcome in outcomes if outcome.question.documents]
    placed = [outcome for outcome in answerable if outcome.question.passages]
    hopeless = [outcome for outcome in outcomes if not outcome.question.documents]
    deflected = [outcome for outcome in outcomes if not outcome.grounded]
    cited = [outcome for outcome in placed if outcome.grounded]
    found = [
        _mean(f"document recall@{k}", answerable, lambda one: recall_at(one, k)),
        _mean("document MRR", answerable, reciprocal_rank),
        _mean("document nDCG@10", answerable, ndcg),
        _mean("passage given", placed, lambda one: holds_expected(one.given, one.question)),
        _mean("answerable deflected", answerable, lambda one: not one.grounded),
        _mean("deflection recall", hopeless, lambda one: not one.grounded),
        _mean("deflection precision", deflected, lambda one: not one.question.documents),
        Measure("valid citations", sum(one.valid_markers for one in outcomes), sum(one.markers for one in outcomes)),
        _mean("right passage cited", cited, lambda one: holds_expected(one.cited, one.question)),
    ]
    return [measure for measure in found if measure.of]


def _mean(name: str, outcomes: Sequence[Outcome], worth: Callable[[Outcome], float]) -> Measure:
    return Measure(name, float(sum(worth(outcome) for outcome in outcomes)), len(outcomes))


def groups(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """All, then each set where there are several, then each kind."""
    found: dict[str, list[Outcome]] = {"all": list(outcomes)}
    sets = sorted({outcome.question.group for outcome in outcomes})
    for name in sets if len(sets) > 1 else ():
        found[f"set {name}"] = [outcome for outcome in outcomes if outcome.question.group == name]
    for name in sorted({outcome.question.kind for outcome in outcomes}):
        found[f"kind {name}"] = [outcome for outcome in outcomes if outcome.question.kind == name]
    return found


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a threshold would do: the share of answerable questions grounded, of unanswerable ones deflected."""

    threshold: float
    grounded: Measure
    deflected: Measure


def curve(outcomes: Sequence[Outcome]) -> list[CurvePoint]:
    """From 0 to 1 in steps of 0.05."""
    answerable = [outcome.score for outcome in outcomes if outcome.question.documents]
    hopeless = [outcome.score for outcome in outcomes if not outcome.question.documents]
    return [
        CurvePoint(
            threshold := step / 20,
            Measure("grounded", sum(score >= threshold for score in answerable), len(answerable)),
            Measure("deflected", sum(score < threshold for score in hopeless), len(hopeless)),
        )
        for step in range(21)
    ]
