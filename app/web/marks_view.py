"""What stands under an answer about its marks: verdict, what is saved, which passages were right. Pure.

One `MarkView` feeds `chat/_verdict.html` and `chat/_marks.html`, for the page and for what an action answers with.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.catalog import Catalog
from app.edge.answers import SourceView
from app.turns.marking import Said


@dataclass(frozen=True, slots=True)
class SourceMark:
    """A passage that may have been the right one; `right` says that it is saved as such."""

    n: int
    numbered: bool
    href: str
    title: str
    locator: str
    right: bool


@dataclass(frozen=True, slots=True)
class MarkView:
    """`verdict` is helpful, not_helpful or empty. `line` says what was saved, empty where there is nothing to say;
    `can_undo` where taking the verdict back undoes it. `unanswerable` says that the question is saved as one that the
    documents don't answer; `offers_unanswerable` that it may be. `is_open` shows the passages at once."""

    turn_id: str
    verdict: str
    reason: str
    line: str
    can_undo: bool
    sources: tuple[SourceMark, ...]
    unanswerable: bool
    offers_unanswerable: bool
    is_open: bool


def mark_view(
    catalog: Catalog, turn_id: str, said: Said, sources: Sequence[SourceView], *, searched: bool, numbered: bool
) -> MarkView:
    """The marks of one turn. `searched`: documents were looked at; `numbered`: the answer can cite its sources."""
    question = said.question
    verdict = "" if said.mark is None else said.mark.verdict
    by_hand = question is not None and question.is_answerable and not question.by_mark
    return MarkView(
        turn_id=turn_id,
        verdict=verdict,
        reason="" if said.mark is None else said.mark.reason or "",
        line=_line(catalog, verdict, said),
        can_undo=question is not None and question.by_mark,
        sources=tuple(
            SourceMark(source.n, numbered, source.href, source.title, source.locator, source.n in said.right)
            for source in sources
        ),
        unanswerable=question is not None and not question.is_answerable,
        offers_unanswerable=searched and not by_hand,
        is_open=verdict == "not_helpful" and question is None,
    )


def _line(catalog: Catalog, verdict: str, said: Said) -> str:
    if said.question is not None:
        count = len(said.question.passages)
        return catalog.t("marks.saved", n=count) if count else catalog.t("marks.saved_unanswerable")
    return catalog.t(f"marks.noted_{verdict}") if verdict else ""
