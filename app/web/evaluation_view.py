"""What the evaluation page shows, as words: figures side by side, questions that fared differently, runs, saved
questions. Pure. Used by `app.web.evaluation` and `app.web.evaluation_runs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlencode

from app.catalog import Catalog
from app.rag.eval_result import COMPARABLE, MEASURES, WORTH
from app.render.names import shown_name
from app.store.eval_questions import EvalQuestion, Place, RightPassage
from app.store.eval_runs import RunRow

SEARCH_CHARS = 400
SUMMARY = ("recall", "given", "deflection_recall", "valid")
"""The figures of a row in the list of runs."""
_NUMBERS = tuple(name for name in COMPARABLE if name != "words_only")

Narrowed = Literal["", "answerable", "unanswerable", "gone"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean and what it is the mean of; both empty where nothing was counted."""

    value: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A measure with each settings, and how far the second lies from the first."""

    label: str
    cells: tuple[Cell, ...]
    difference: str


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The measures over all questions, or over those of a kind."""

    name: str
    rows: tuple[FigureRow, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A question that fared differently; `better` is the number of the better settings (0, 1)."""

    question: str
    fates: tuple[str, ...]
    better: int
    search: str


@dataclass(frozen=True, slots=True)
class ResultView:
    """One finished run."""

    when: str
    settings: tuple[str, ...]
    groups: tuple[FigureGroup, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a row: its figures are those of the current settings of then."""

    id: int
    when: str
    state: str
    compared: str
    questions: str
    cells: tuple[Cell, ...]
    has_result: bool
    current: bool


@dataclass(frozen=True, slots=True)
class Expected:
    """A passage that would be right; `problem` says that it is not there any more. `href` is empty then."""

    path: str
    quote: str
    href: str
    problem: str


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A saved question."""

    id: int
    question: str
    kind: str
    after: str
    expected: tuple[Expected, ...]
    gone: bool
    receipt: str
    search: str


def result_view(run: RunRow, questions: Sequence[EvalQuestion], catalog: Catalog, now: datetime) -> ResultView | None:
    """A run's result; None while it has none."""
    if run.result is None:
        return None
    result, texts = run.result, {question.id: question.question for question in questions}
    sides: list[Mapping[str, Any]] = result["sides"]
    notes = [
        catalog.t(f"evaluation.note_{name}", n=result[name]) for name in ("left_out", "without_words") if result[name]
    ]
    return ResultView(
        when=catalog.when(run.started_at, now),
        settings=tuple(settings_words(side["settings"], catalog) for side in sides),
        groups=tuple(_group(name, sides, catalog) for name in sides[0]["groups"]),
        differences=tuple(_differences(result["questions"], texts, catalog)),
        notes=tuple(notes),
    )


def run_view(run: RunRow, catalog: Catalog, now: datetime, *, current: bool) -> RunView:
    """A row of the list of runs."""
    figures: Mapping[str, Any] = run.result["sides"][0]["groups"]["all"] if run.result else {}
    asked = run.total // (2 if run.changes else 1)
    return RunView(
        id=run.id,
        when=catalog.when(run.started_at, now),
        state="" if run.state == "done" else catalog.t(f"evaluation.state_{run.state}"),
        compared=settings_words(run.changes, catalog) if run.changes else "",
        questions=catalog.number(len(run.result["questions"]) if run.result else asked),
        cells=tuple(_cell(figures.get(name), name, catalog) for name in SUMMARY),
        has_result=run.result is not None,
        current=current,
    )


def settings_words(settings: Mapping[str, Any], catalog: Catalog) -> str:
    """`RETRIEVAL_TOP_K 12, RETRIEVAL_MIN_SCORE 0.35`; what is not set is left out."""
    words = [f"{name.upper()} {settings[name]:g}" for name in _NUMBERS if settings.get(name) is not None]
    return ", ".join([*words, *([catalog.t("evaluation.words_only")] if settings.get("words_only") else [])])


def question_view(saved: EvalQuestion, catalog: Catalog) -> QuestionView:
    """A saved question with where its passages are."""
    kind = f"evaluation.kind_{saved.kind}"
    pairs = zip(saved.passages, saved.places, strict=True)
    return QuestionView(
        id=saved.id,
        question=saved.question,
        kind=catalog.t(kind) if catalog.has(kind) else saved.kind,
        after=saved.history[-1].question if saved.history else "",
        expected=tuple(_expected(passage, place, catalog) for passage, place in pairs),
        gone=saved.is_gone,
        receipt=f"/turns/{saved.turn_id}" if saved.turn_id else "",
        search=search_href(saved.question),
    )


def narrowed(saved: Sequence[EvalQuestion], q: str, which: Narrowed) -> list[EvalQuestion]:
    """The questions that hold `q`, of one sort, the newest first."""
    words = q.casefold()
    return [
        one
        for one in reversed(saved)
        if words in one.question.casefold() and which in ("", "gone" if one.is_gone else _sort(one))
    ]


def _sort(saved: EvalQuestion) -> Narrowed:
    return "answerable" if saved.is_answerable else "unanswerable"


def search_href(question: str) -> str:
    """The library, searched for a question."""
    return "/library?" + urlencode({"q": " ".join(question.split())[:SEARCH_CHARS]})


def _expected(passage: RightPassage, place: Place, catalog: Catalog) -> Expected:
    problem = ""
    if place.document_id is None:
        problem = catalog.t("evaluation.document_gone")
    elif not place.in_text:
        problem = catalog.t("evaluation.words_gone")
    href = "" if place.document_id is None else f"/documents/{place.document_id}"
    return Expected(shown_name(passage.path), passage.quote, href, problem)


def _group(name: str, sides: Sequence[Mapping[str, Any]], catalog: Catalog) -> FigureGroup:
    figures: list[Mapping[str, Any]] = [side["groups"].get(name, {}) for side in sides]
    kind = f"evaluation.kind_{name.removeprefix('kind ')}"
    label = catalog.t("evaluation.all") if name == "all" else catalog.t(kind) if catalog.has(kind) else name
    rows = [
        FigureRow(
            label=catalog.t(f"evaluation.measure_{measure}"),
            cells=tuple(_cell(side.get(measure), measure, catalog) for side in figures),
            difference=_difference([side.get(measure) for side in figures]),
        )
        for measure in MEASURES.values()
        if any(measure in side for side in figures)
    ]
    return FigureGroup(label.removeprefix("kind "), tuple(rows))


def _cell(figure: Mapping[str, Any] | None, measure: str, catalog: Catalog) -> Cell:
    if figure is None or not figure["of"]:
        return Cell()
    total, of = figure["total"], int(figure["of"])
    counted = measure not in ("mrr", "ndcg")
    words = (
        catalog.t("evaluation.counted", total=round(total), of=of) if counted else catalog.t("evaluation.over", n=of)
    )
    return Cell(f"{total / of:.2f}", words)


def _difference(figures: Sequence[Mapping[str, Any] | None]) -> str:
    known = [figure["total"] / figure["of"] for figure in figures if figure is not None and figure["of"]]
    if len(known) != 2:
        return ""
    by = round(known[1] - known[0], 2)
    return f"{by:+.2f}".replace("-", "−") if by else "0"


def _differences(
    fared: Sequence[Mapping[str, Any]], texts: Mapping[int, str], catalog: Catalog
) -> Sequence[Difference]:
    return [
        Difference(
            question=texts[one["id"]],
            fates=tuple(catalog.t(f"evaluation.fate_{fate}") for fate in one["sides"]),
            better=int(WORTH[one["sides"][1]] > WORTH[one["sides"][0]]),
            search=search_href(texts[one["id"]]),
        )
        for one in fared
        if len(set(one["sides"])) > 1 and one["id"] in texts
    ]
