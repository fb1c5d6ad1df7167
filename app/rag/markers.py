"""Citation markers in an answer: `[1]`, `[1][2]`, `[1, 2]`, `[1-3]`. Pure.

Owns where a marker stands and which numbers it names, and taking markers out of text. Whether a number exists among
the passages is for `app.rag.citations` to say.
"""

import re
from collections.abc import Callable, Container
from dataclasses import dataclass

from app.render.sentences import code_spans, inside

_MARKER = re.compile(r"(?<![\\!])\[(?P<body>[1-9]\d{0,2}(?:\s*[,;–-]\s*[1-9]\d{0,2}){0,19})\](?P<link>\(|:)?")
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_WIDEST_RANGE = 20


@dataclass(frozen=True, slots=True)
class Marker:
    """`answer[start:end]` is the marker, brackets included; `numbers` are those it names, in its order, each once."""

    start: int
    end: int
    numbers: tuple[int, ...]


def find_markers(answer: str) -> list[Marker]:
    """The markers of `answer`, in order.

    Not markers: anything in code, links `[1](…)` and `[text][1]`, link definitions `[1]: …`, footnotes `[^1]`, boxes
    `[ ]`, `[0]`, escaped brackets, and numbers of four digits and more (years).
    """
    if "[" not in answer:
        return []
    code = code_spans(answer)
    markers: list[Marker] = []
    for found in _MARKER.finditer(answer):
        start, end = found.start(), found.end("body") + 1
        follows_marker = bool(markers) and markers[-1].end == start
        if inside(code, start) or _is_link(answer, found) or (answer[start - 1 : start] == "]" and not follows_marker):
            continue
        markers.append(Marker(start, end, _numbers(found.group("body"))))
    return markers


def strip_markers(text: str) -> str:
    """`text` without its markers and the blanks before them: what an earlier answer looks like in a later prompt, where
    its numbers would mean other passages."""
    return replace_markers(text, lambda _: "")


def replace_markers(text: str, written: Callable[[Marker], str]) -> str:
    """`text` with each marker as `written` has it; where that is nothing, the blanks before it go as well. Code, links
    and everything else that only looks like a marker stay as they are."""
    kept: list[str] = []
    at = 0
    for marker in find_markers(text):
        instead = written(marker)
        between = text[at : marker.start]
        kept += [between if instead else between.rstrip(" \t"), instead]
        at = marker.end
    return "".join([*kept, text[at:]])


def with_numbers(text: str, known: Container[int]) -> str:
    """`text` with the numbers in `known` only, one pair of brackets each: what a reader may copy."""
    return replace_markers(text, lambda marker: "".join(f"[{n}]" for n in marker.numbers if n in known))


def _is_link(answer: str, found: re.Match[str]) -> bool:
    if found.group("link") == ":":
        return answer[answer.rfind("\n", 0, found.start()) + 1 : found.start()].strip() == ""
    return found.group("link") == "("


def _numbers(body: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for low, high in _RANGE.findall(body):
        first, last = int(low), int(high or low)
        numbers.extend(range(first, last + 1) if 0 <= last - first < _WIDEST_RANGE else (first, last))
    return tuple(dict.fromkeys(numbers))
