"""Did the tools say anything new? One key for all the results of a batch. Pure.

Keys are compared inside one process and never stored. `None` is the unknown answer: equal to nothing, itself included.
Used by the detectors' callers.
"""

import re
from collections.abc import Sequence

from app.guard.signature import canonical_json

AnswersKey = int

MASKED_CHARS = 65_536
"""Longer results are compared as they are: a mask costs time in proportion."""

_MOVING = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # 2026-01-31T12:00:00Z
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"  # 12:00:00.123
    r"|\b\d+(?:[.,]\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b"  # 1.2 s
    r"|\b0x[0-9a-fA-F]+\b"
    r"|\b1\d{9}(?:\d{3}){0,3}(?:\.\d+)?\b"  # seconds since 1970, down to nanoseconds
)


def answers_key(signatures: Sequence[str], answers: Sequence[object], *, masked: bool = False) -> AnswersKey | None:
    """The key of a batch's answers, each with its call; None when there is not one per call.

    A text and a JSON value of the same spelling differ. With `masked`, times, durations and addresses are taken for
    equal, so that a clock in the output is no news.
    """
    if len(answers) != len(signatures):
        return None
    pairs = [
        hash((signature, *_comparable(answer, masked))) for signature, answer in zip(signatures, answers, strict=True)
    ]
    return hash(tuple(sorted(pairs)))


def mask(text: str) -> str:
    """The text with everything that a clock moves replaced by one sign."""
    return _MOVING.sub("\0", text) if len(text) <= MASKED_CHARS else text


def _comparable(answer: object, masked: bool) -> tuple[str, str | bytes]:
    if isinstance(answer, str):
        return "text", mask(answer) if masked else answer
    canonical = canonical_json(answer)
    return "json", mask(canonical.decode()) if masked else canonical
