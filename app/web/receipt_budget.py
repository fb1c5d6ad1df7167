"""What the model's window was spent on, as a bar with its legend: computed from the prompt as it was sent. Pure.

Tokens are Docent's estimate of each part; the window and the room for the prompt are what the turn recorded, and what
lies between them was kept for the answer. Used by `app.web.receipt_view`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from app.catalog import Catalog
from app.rag.prompts import passages_in
from app.rag.tokens import estimate_tokens
from app.web.receipt_time import BAR_WIDTH

ORDER = ("instructions", "history", "passages", "tools", "question", "reserve", "free")
"""The parts as they stand in the bar."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the bar: `kind` is one of `ORDER`, `x` and `width` are in units of `BAR_WIDTH`."""

    kind: str
    label: str
    tokens: int
    x: int
    width: int


def budget(prompt: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any], catalog: Catalog) -> tuple[Part, ...]:
    """The parts of a turn's window that are not empty, in order. Empty where no prompt or no window was recorded.

    A prompt that takes more than its room, as one with tool results may, takes it from what was kept for the answer.
    """
    window, room = int(numbers.get("window") or 0), int(numbers.get("prompt_room") or 0)
    if not prompt or not 0 < room <= window:
        return ()
    sizes = _sizes(prompt)
    left = window - sum(sizes.values())
    sizes["reserve"] = max(0, min(window - room, left))
    sizes["free"] = max(0, left - sizes["reserve"])
    kinds = [kind for kind in ORDER if sizes[kind] > 0]
    total = sum(sizes.values())
    ends = [round(end / total * BAR_WIDTH) for end in accumulate(sizes[kind] for kind in kinds)]
    starts = [0, *ends[:-1]]
    return tuple(
        Part(kind, _label(kind, numbers, catalog), sizes[kind], start, end - start)
        for kind, start, end in zip(kinds, starts, ends, strict=True)
    )


def _sizes(prompt: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Estimated tokens of each part of a prompt: one system message, past turns, the question, and tool rounds."""
    sizes: dict[str, int] = dict.fromkeys(ORDER, 0)
    asked = max((place for place, message in enumerate(prompt) if message.get("role") == "user"), default=-1)
    for place, message in enumerate(prompt):
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        if message.get("role") == "system":
            passages = estimate_tokens(passages_in(text))
            sizes["passages"] += passages
            sizes["instructions"] += max(0, estimate_tokens(text) - passages)
        elif place > asked:
            calls = (call["function"] for call in message.get("tool_calls") or ())
            said = [text, *(f"{call['name']} {call['arguments']}" for call in calls)]
            sizes["tools"] += estimate_tokens("\n".join(said))
        else:
            sizes["question" if place == asked else "history"] += estimate_tokens(text)
    return sizes


def _label(kind: str, numbers: Mapping[str, Any], catalog: Catalog) -> str:
    taken, dropped = numbers.get("taken"), numbers.get("dropped")
    if kind == "passages" and isinstance(taken, int) and dropped:
        return catalog.t("receipt.budget_passages_of", taken=taken, found=taken + len(dropped))
    return catalog.t(f"receipt.budget_{kind}")
