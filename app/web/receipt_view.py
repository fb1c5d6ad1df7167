"""What the receipt of a turn shows, computed from what the turn recorded. Pure: no database, no request.

Nothing is guessed: a figure that was not recorded is absent from the view. Used by `app.web.receipts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from app.catalog import Catalog
from app.edge.answers import reader_href, title_of
from app.edge.notices import cut_words, trimmed_words
from app.rag.tokens import estimate_tokens
from app.rag.turn import TurnStats
from app.render.names import shown_name
from app.store.chats import MessageRow
from app.store.turns import TurnRow
from app.web.chip_view import asked_of
from app.web.receipt_budget import Part, budget
from app.web.receipt_time import BAR_WIDTH, Span, waterfall
from app.web.tool_view import ToolLine, tool_lines
from app.web.whole_view import receipt_words


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the receipt's head, as words."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that was found. `n` is empty when it was not given; `fate` is cited, given or dropped. `score` is empty
    for what a tool found by its place or its words: no search has scored it."""

    n: str
    title: str
    locator: str
    href: str
    score: str
    bar: int
    fate: Literal["cited", "given", "dropped"]
    outcome: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message as it was sent."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """Everything the page shows of one turn; empty strings and tuples are left out by the template."""

    turn_id: str
    head: str
    figures: tuple[Figure, ...]
    typed: str
    asked_of: str
    """What the question named and was asked of."""
    searched: str
    searched_how: str
    """Who worded the query, where the model was asked to."""
    mode: str
    spans: tuple[Span, ...]
    budget: tuple[Part, ...]
    tools: tuple[ToolLine, ...]
    tools_words: str
    candidates: tuple[Candidate, ...]
    summary: str
    threshold: str
    tick: int
    prompt: tuple[PromptMessage, ...]
    prompt_words: str
    tokens: str
    line: str


def build(
    turn: TurnRow,
    question: MessageRow | None,
    answer: MessageRow | None,
    *,
    threshold: float,
    when: str,
    catalog: Catalog,
) -> Receipt:
    """The receipt of `turn`. `threshold` is the score that was needed (0..1), `when` the start as words."""
    numbers: Mapping[str, Any] = turn.numbers or {}
    threshold = float(numbers.get("min_score", threshold))
    searched = str(numbers.get("searched") or "")
    sources = answer.sources if answer else ()
    given = turn.mode == "grounded"
    asked = int(numbers.get("given", len(sources)))  # the others were found by tools
    if receipt_words(catalog, numbers) is not None:
        asked = 0  # nothing was searched, so that no search has scored it
    candidates = (
        *(candidate(source, given, catalog) for source in sources[:asked]),
        *(candidate({**source, "score": None}, given, catalog) for source in sources[asked:]),
        *(candidate(source, False, catalog) for source in numbers.get("dropped", ())),
    )
    prompt = tuple(_message(message, catalog) for message in turn.prompt or ())
    outcome = turn.outcome or turn.state
    model = str(numbers.get("model") or "")
    words = (catalog.t("receipt.turn", id=turn.id[:8]), when, model, catalog.t(f"receipt.outcome_{outcome}"))
    return Receipt(
        turn_id=turn.id,
        head=" · ".join(word for word in words if word),
        figures=_figures(turn, numbers, catalog),
        typed=question.content if question else "",
        asked_of=asked_of(catalog, numbers),
        searched=searched,
        searched_how=_rewrite_words(numbers, catalog),
        mode=_mode_words(turn, numbers, threshold, catalog),
        spans=waterfall(numbers, catalog),
        budget=budget(turn.prompt or (), numbers, catalog),
        tools=tuple(tool_lines(catalog, numbers)),
        tools_words=_tools_words(numbers, catalog),
        candidates=candidates,
        summary=_summary(candidates, numbers, catalog) if candidates else "",
        threshold=catalog.number(threshold),
        tick=round(threshold * BAR_WIDTH),
        prompt=prompt,
        prompt_words=_prompt_words(prompt, numbers, catalog),
        tokens=_token_words(prompt, numbers, catalog),
        line=log_line(turn),
    )


def log_line(turn: TurnRow) -> str:
    """The turn's line as the log has it, rebuilt from what the row keeps; empty while the turn runs
    and after a kill, which leaves no figures."""
    if not turn.numbers or turn.outcome is None or not turn.numbers.get("total_ms"):
        return ""
    known = {field.name for field in fields(TurnStats)} - {"turn", "chat", "user", "mode", "outcome"}
    numbers: dict[str, Any] = {key: value for key, value in turn.numbers.items() if key in known}
    stats = TurnStats(
        turn=turn.id,
        chat=turn.chat_id,
        user=turn.user_id,
        mode=turn.mode,  # pyright: ignore[reportArgumentType] - the column holds what TurnStats wrote
        outcome=turn.outcome,  # pyright: ignore[reportArgumentType] - likewise
        **numbers,
    )
    return stats.log_line()


def candidate(source: Mapping[str, Any], given: bool, catalog: Catalog) -> Candidate:
    """One row of the candidates' table."""
    score = float(source.get("score") or 0.0)
    if not given:
        fate, outcome = "dropped", f"receipt.{_drop_key(source)}"
    elif source.get("cited"):
        fate, outcome = "cited", "receipt.cited"
    else:
        fate, outcome = "given", "receipt.given_not_cited"
    path, page, line = str(source.get("path", "")), source.get("page"), source.get("line_start")
    where = f", {catalog.t('reader.page', page=page)}" if page else f":{line}" if line else ""
    return Candidate(
        n=str(source.get("n", "")) if given else "–",
        title=shown_name(title_of(source)),
        locator=shown_name(path) + where,
        href=reader_href({**source, "n": None}, ""),
        score="" if source.get("score") is None else catalog.number(score),
        bar=round(min(1.0, max(0.0, score)) * BAR_WIDTH),
        fate=fate,
        outcome=catalog.t(outcome),
    )


def as_text(receipt: Receipt, title: str) -> str:
    """The receipt as plain lines, for a bug report."""
    lines = [title, receipt.head, "", *(f"{figure.label}: {figure.value}" for figure in receipt.figures)]
    lines += ["", receipt.typed, *filter(None, (receipt.asked_of, receipt.searched, receipt.mode)), ""]
    lines += [f"{span.label}: {span.time}" for span in receipt.spans]
    lines += [f"{part.label}: {part.tokens}" for part in receipt.budget]
    lines += [f"{tool.name} {tool.asked}: {tool.summary}, {tool.time}" for tool in receipt.tools]
    lines += ["", *(f"{c.n} {c.score or '–'} {c.title} ({c.locator}): {c.outcome}" for c in receipt.candidates)]
    lines += [*filter(None, (receipt.summary, receipt.tokens)), "", receipt.line]
    return "\n".join(lines).strip() + "\n"


def _figures(turn: TurnRow, numbers: Mapping[str, Any], catalog: Catalog) -> tuple[Figure, ...]:
    if not numbers.get("total_ms"):
        return ()
    values: list[tuple[str, str]] = [("total", catalog.seconds(int(numbers["total_ms"])))]
    if numbers.get("first_ms"):
        values.append(("first_word", catalog.seconds(int(numbers["first_ms"]))))
    if numbers.get("tools"):
        values.append(("tools", catalog.number(len(numbers["tools"]))))
    for key in ("rounds", "retries"):
        if key in numbers:
            values.append((key, catalog.number(int(numbers[key]))))
    if turn.mode == "grounded" and "cited" in numbers:
        valid, dropped = numbers["cited"], numbers.get("dropped_cites", 0)
        values.append(("citations", catalog.t("receipt.citations_value", valid=valid, dropped=dropped)))
    if "scaffold_stripped" in numbers:
        values.append(("stripped", catalog.t("receipt.stripped_value", n=numbers["scaffold_stripped"])))
    if "guard" in numbers:
        values.append(("guard", _guard_words(numbers, catalog)))
    return tuple(Figure(catalog.t(f"receipt.{key}"), value) for key, value in values)


def _guard_words(numbers: Mapping[str, Any], catalog: Catalog) -> str:
    """The step, and what it was taken for."""
    step, cause = catalog.t(f"receipt.guard_{numbers['guard']}"), f"receipt.cause_{numbers.get('guard_detector')}"
    return catalog.t("receipt.guard_value", step=step, cause=catalog.t(cause)) if catalog.has(cause) else step


def _mode_words(turn: TurnRow, numbers: Mapping[str, Any], threshold: float, catalog: Catalog) -> str:
    if turn.mode is None:
        return ""
    if (special := receipt_words(catalog, numbers)) is not None:
        return special
    if turn.mode == "deflected" and not numbers.get("retrieval_ms") and not numbers.get("top_score"):
        return catalog.t("receipt.mode_without")
    score = catalog.number(float(numbers.get("top_score") or 0.0))
    return catalog.t(f"receipt.mode_{turn.mode}", score=score, threshold=catalog.number(threshold))


def _rewrite_words(numbers: Mapping[str, Any], catalog: Catalog) -> str:
    by, ms = numbers.get("rewrite"), int(numbers.get("rewrite_ms") or 0)
    return catalog.t(f"receipt.rewrite_{by}", time=catalog.seconds(ms)) if by in ("model", "rules") else ""


def _summary(candidates: Sequence[Candidate], numbers: Mapping[str, Any], catalog: Catalog) -> str:
    given = sum(candidate.fate != "dropped" for candidate in candidates)
    cited = sum(candidate.fate == "cited" for candidate in candidates)
    summary = catalog.t("receipt.summary", found=len(candidates), given=given, cited=cited)
    return " ".join(filter(None, (summary, trimmed_words(catalog, numbers))))


def _prompt_words(prompt: Sequence[PromptMessage], numbers: Mapping[str, Any], catalog: Catalog) -> str:
    if not prompt:
        return catalog.t("receipt.prompt_none")
    messages = catalog.t("receipt.prompt_messages", n=len(prompt))
    tokens = numbers.get("prompt_tokens")
    return catalog.t("receipt.prompt_messages_tokens", messages=messages, tokens=tokens) if tokens else messages


def _token_words(prompt: Sequence[PromptMessage], numbers: Mapping[str, Any], catalog: Catalog) -> str:
    """What the server counted beside what Docent estimates for the same prompt: far apart means the window is near."""
    counted, estimated = numbers.get("prompt_tokens"), sum(estimate_tokens(message.text) for message in prompt)
    words: list[str] = []
    if counted and estimated:
        words.append(catalog.t("receipt.counted_estimated", counted=counted, estimated=estimated))
    elif counted:
        words.append(catalog.t("receipt.counted", n=counted))
    elif estimated:
        words.append(catalog.t("receipt.estimated", n=estimated))
    if numbers.get("window") and words:
        words += _window_words(numbers, catalog)
    words.append(cut_words(catalog, numbers))
    return " ".join(filter(None, words))


def _window_words(numbers: Mapping[str, Any], catalog: Catalog) -> list[str]:
    """The room, where the window comes from, and that the server has less where it says so."""
    window, said, source = numbers["window"], numbers.get("window_said"), numbers.get("window_source")
    words = [catalog.t("receipt.window", window=window, room=numbers.get("prompt_room", 0))]
    if catalog.has(key := f"receipt.window_{source}"):
        words.append(catalog.t(key))
    if said and said < window:
        words.append(catalog.t("receipt.window_less", said=said))
    return words


def _tools_words(numbers: Mapping[str, Any], catalog: Catalog) -> str:
    calls, requests = len(numbers.get("tools") or ()), int(numbers.get("rounds") or 0)
    key = "whole.receipt_steps" if numbers.get("whole") else "receipt.calls"
    return catalog.t(key, n=calls) + " " + catalog.t("receipt.requests", n=requests)


def _drop_key(source: Mapping[str, Any]) -> str:
    why = source.get("why")
    return f"dropped_{why}" if why in ("budget", "document", "score") else "nearest"


def _message(message: Mapping[str, Any], catalog: Catalog) -> PromptMessage:
    role, content = str(message.get("role", "")), message.get("content")
    key = f"receipt.role_{role}"
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    said = [content if isinstance(content, str) else "", *(f"{call['name']} {call['arguments']}" for call in calls)]
    return PromptMessage(catalog.t(key) if catalog.has(key) else role, "\n".join(filter(None, said)))
