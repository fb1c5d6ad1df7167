"""What a chat's page shows of its turns, computed from stored rows. Pure: no database, no request.

One `TurnView` feeds one template, `chat/_turn.html`, for the page and for the fragment that replaces a live turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from app.catalog import Catalog
from app.edge.answers import SourceRow, SourceView, answer_of_message, source_views
from app.edge.errors import problem_message
from app.edge.notices import cut_words, talk_words
from app.rag.markers import with_numbers
from app.rag.prompts import NO_ANSWER_SENTENCE
from app.store.chats import MessageRow
from app.store.turns import TurnRow
from app.turns.marking import Said
from app.web.chip_view import ChipView, chip_views, remark_notices
from app.web.marks_view import MarkView, mark_view
from app.web.tool_view import ToolLine, first_line, tool_lines
from app.web.whole_view import MoreLink, given_words, more_link, part_notices

BAR_WIDTH = 40
"""Pixels of a score's bar."""


@dataclass(frozen=True, slots=True)
class NearRow:
    """A passage that came near: its source, and its bar in pixels."""

    source: SourceView
    bar: float


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn as shown. `status` is the answer's: streaming, complete, stopped, error, interrupted."""

    id: str
    question: str
    asked_at: datetime
    status: str
    given: str
    steps: list[ToolLine]
    """What was looked up, in order: the search before the answer, then the model's tool calls."""
    guarded: bool
    """Whether the turn repeated itself and was told so."""
    thinking: str
    thought: str
    """What the fold of the reasoning is called: how long it took, where that is known."""
    html: Markup
    copy_text: str
    """The answer's Markdown with its sources listed below."""
    spoken: str
    """What is said to a screen reader once the turn has ended; empty where an alert says it."""
    cited: list[SourceView]
    also_read: list[SourceView]
    scored: int
    """Sources up to this number were ranked by a search; the others were found by their place or their words."""
    nearest: list[NearRow]
    threshold: float
    threshold_x: float
    deflected: bool
    notices: list[str]
    problem: str | None
    problem_more: str | None
    can_continue: bool
    total_ms: int | None
    marks: MarkView
    chips: list[ChipView]
    """What the question was asked of, where it names something."""
    more: MoreLink | None
    """Where the rest of a count is."""


def turn_views(
    catalog: Catalog, messages: Sequence[MessageRow], turns: Sequence[TurnRow], said: Mapping[str, Said] | None = None
) -> list[TurnView]:
    """The turns of a chat in order; `messages` and `turns` are all of them, `said` what was said of answers by turn."""
    known = said or {}
    by_id = {turn.id: turn for turn in turns}
    questions = {message.turn_id: message for message in messages if message.role == "user"}
    return [
        turn_view(catalog, questions[message.turn_id], message, by_id[message.turn_id], known.get(message.turn_id))
        for message in messages
        if message.role == "assistant" and message.turn_id in questions and message.turn_id in by_id
    ]


def turn_view(
    catalog: Catalog, question: MessageRow, answer: MessageRow, turn: TurnRow, said: Said | None = None
) -> TurnView:
    """One turn from its question, its answer and its row, and what was said of the answer."""
    numbers: Mapping[str, Any] = turn.numbers or {}
    deflected = turn.mode == "deflected"
    rows: Sequence[SourceRow] = () if deflected else answer.sources
    sources = source_views(rows, turn.id)
    near = source_views([{**row, "n": 0} for row in answer.sources], turn.id) if deflected else []
    threshold = float(numbers.get("min_score") or 0.0)
    found = source_views(answer.sources, turn.id)
    searched = bool(numbers.get("searched") or found)
    return TurnView(
        id=turn.id,
        question=question.content,
        asked_at=turn.started_at,
        status=answer.status,
        given=_given_line(catalog, turn, numbers, sources, near),
        steps=[*first_line(catalog, numbers, None if deflected else len(sources)), *tool_lines(catalog, numbers)],
        guarded=numbers.get("guard", "none") != "none",
        thinking=answer.thinking,
        thought=_thought(catalog, numbers),
        html=answer_of_message(catalog, answer.content, rows, turn.id),
        copy_text=_copy_text(answer.content, sources),
        spoken=_spoken(catalog, answer, sources),
        cited=[source for source in sources if source.cited],
        also_read=[source for source in sources if not source.cited] if answer.status == "complete" else [],
        scored=int(numbers.get("given", len(found))) if numbers.get("searched") else 0,
        nearest=[NearRow(source, round(BAR_WIDTH * min(1.0, source.score), 1)) for source in near],
        threshold=threshold,
        threshold_x=round(BAR_WIDTH * threshold, 1),
        deflected=deflected,
        notices=_notices(catalog, answer, turn, numbers, sources),
        problem=_problem(catalog, answer, numbers),
        problem_more=catalog.t("chat.malformed_more") if answer.error_code == "malformed_reply" else None,
        can_continue=_can_continue(answer, numbers),
        total_ms=numbers.get("total_ms") or None,
        chips=chip_views(catalog, numbers),
        marks=mark_view(catalog, turn.id, said or Said(), found, searched=searched, numbered=not deflected),
        more=more_link(catalog, numbers),
    )


def _copy_text(content: str, sources: Sequence[SourceView]) -> str:
    content = with_numbers(content, {source.n for source in sources})
    lines = [f"[{source.n}] {source.title}, {source.locator}" for source in sources if source.cited]
    return "\n\n".join(part for part in (content.strip(), "\n".join(lines)) if part)


def _given_line(
    catalog: Catalog,
    turn: TurnRow,
    numbers: Mapping[str, Any],
    sources: Sequence[SourceView],
    near: Sequence[SourceView],
) -> str:
    """What the model was given: passages, and how much of the talk where not all of it fitted."""
    given = _given(catalog, turn, numbers, sources, near)
    return " · ".join(filter(None, (given, talk_words(catalog, numbers, "chat.given_turns"))))


def _given(
    catalog: Catalog,
    turn: TurnRow,
    numbers: Mapping[str, Any],
    sources: Sequence[SourceView],
    near: Sequence[SourceView],
) -> str:
    if turn.mode is None:
        return ""
    if (special := given_words(catalog, numbers)) is not None:
        return special
    if turn.mode == "deflected":
        if not near and not numbers.get("searched"):
            return catalog.t("chat.given_without")
        documents = numbers.get("documents")
        return catalog.t("chat.given_nothing_in", n=documents) if documents else catalog.t("chat.given_nothing")
    dropped = len(numbers.get("dropped") or ())
    passages = int(numbers.get("given", len(sources)))  # tools add to the sources
    if dropped:  # neighbours were found apart and are given as one: here each counts
        passages = int(numbers.get("taken", passages))
    cited = sum(source.cited for source in sources)
    given = catalog.t("chat.given_fit" if dropped else "chat.given", n=passages, found=passages + dropped)
    return f"{given}, {catalog.t('chat.cited', n=cited)}" if turn.state == "done" else given


def _notices(
    catalog: Catalog, answer: MessageRow, turn: TurnRow, numbers: Mapping[str, Any], sources: Sequence[SourceView]
) -> list[str]:
    if answer.status == "stopped":
        return [catalog.t("chat.stopped" if answer.content else "chat.stopped_early")]
    if answer.status != "complete":
        return []
    notices = [*remark_notices(catalog, numbers), *part_notices(catalog, numbers)]
    if cut := cut_words(catalog, numbers):
        notices.append(cut)
    if numbers.get("finish_reason") == "length":
        notices.append(catalog.t("notices.answer_cut"))
    says_nothing = answer.content.strip() == NO_ANSWER_SENTENCE
    is_claimed = turn.mode == "grounded" and not says_nothing and not numbers.get("told")
    if is_claimed and not any(source.cited for source in sources):
        notices.append(catalog.t("notices.answer_unsupported"))
    return notices


def _thought(catalog: Catalog, numbers: Mapping[str, Any]) -> str:
    ms = numbers.get("thought_ms")
    return catalog.t("chat.thought_for", s=f"{ms / 1000:.1f}") if ms else catalog.t("chat.thought")


def _spoken(catalog: Catalog, answer: MessageRow, sources: Sequence[SourceView]) -> str:
    if answer.status == "stopped":
        return catalog.t("chat.stopped_spoken")
    cited = sum(source.cited for source in sources)
    return catalog.t("chat.ready_spoken", n=cited) if answer.status == "complete" else ""


def _can_continue(answer: MessageRow, numbers: Mapping[str, Any]) -> bool:
    """Whether there is half an answer to go on from; one that went round in circles would go on with that."""
    is_cut = answer.status in ("stopped", "error", "interrupted") or numbers.get("finish_reason") == "length"
    return bool(answer.content) and is_cut and answer.error_code != "loop_guard"


def _problem(catalog: Catalog, answer: MessageRow, numbers: Mapping[str, Any]) -> str | None:
    """The sentence the stream ended with; of a turn that a kill ended only the code is known."""
    if answer.status not in ("error", "interrupted"):
        return None
    return problem_message(catalog, numbers.get("problem") or {"code": answer.error_code})
