"""The detectors that look at one thing each: the same batch again (`loop`), the same prose again (`stagnation`), the
same few batches in turn (`cycle`). Pure.

They hold what has happened since the last user message and are told of it step by step; where the steps come from,
and what a trip leads to, is their callers' business: `app.guard.scan` and `app.guard.turn_guard`.
"""

import unicodedata
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from app.guard.answers import AnswersKey
from app.guard.effects import OBSERVATIONS, BatchClass

Detector = Literal["loop", "stagnation", "requery", "cycle"]

ALLOWANCE = 15
WINDOW_FACTOR = 4
"""The stagnation window in limits. Never below 3: prose that alternates would no longer add up."""
NORMALISED_CHARS = 65_536
CYCLE_WINDOW = 24
CYCLE_REPEATS = 3
CYCLE_PERIODS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds: the next one after so many trips. None turns a detector, or the observation tier, off."""

    strikes: int | None = 2
    stagnation: int | None = 5
    allowance: int | None = ALLOWANCE
    observations: tuple[str, ...] = OBSERVATIONS
    mask_answers: bool = False
    """Whether answers that differ only in times, durations and addresses count as equal."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What a detector saw: so many repeats where `threshold` are fine.

    `moved` says that the answers kept changing and it was the sum that went too far. `signature` is None for prose.
    """

    detector: Detector
    signature: str | None
    repeat_count: int
    threshold: int
    moved: bool = False


class Answered(Enum):
    """What a batch's answers were, beside those of the same batch before."""

    NOT_CURRENT = "not current"
    NOT_COMPARABLE = "not comparable"
    REPEATED = "repeated"
    CHANGED = "changed"


class Step(NamedTuple):
    """A checked batch; hands its answers in once. `rescued`: passed only because answers had moved."""

    serial: int
    trip: Trip | None
    rescued: bool


class LoopDetector:
    """Counts how often the same batch comes in a row."""

    def __init__(self, strikes: int, allowance: int | None = ALLOWANCE) -> None:
        self._strikes = strikes
        self._allowance = allowance
        self._serial = 0
        self._open: int | None = None
        self._signature: str | None = None
        self._count = self._total = 0
        self._answers: AnswersKey | None = None

    def check(self, signature: str, kind: BatchClass) -> Step:
        """Counts a batch and judges it. The answers that come to it belong to the step."""
        if signature != self._signature:
            self.clear()
            self._signature = signature
        self._count += 1
        self._total += 1
        self._serial += 1
        self._open = self._serial
        tier = kind.observation and self._allowance is not None
        limit = self._allowance if tier and self._allowance is not None else self._strikes
        ceiling = max(self._allowance or 0, self._strikes)
        trip = None
        if self._count > limit:
            trip = Trip("loop", signature, self._count, limit)
        elif self._total > ceiling and (kind.costly or not tier):
            trip = Trip("loop", signature, self._total, ceiling, moved=True)
        return Step(self._serial, trip, rescued=trip is None and self._total > limit)

    def record(self, step: Step, answers: AnswersKey | None) -> Answered:
        """Takes the answers of the last checked batch. A change lets the count begin anew."""
        if step.serial != self._open:
            return Answered.NOT_CURRENT
        self._open = None
        before, self._answers = self._answers, answers
        if before is None or answers is None:
            return Answered.NOT_COMPARABLE
        if before == answers:
            return Answered.REPEATED
        self._count = 1
        return Answered.CHANGED

    def clear(self) -> None:
        """Ends the run: something else happened."""
        self._signature = self._answers = self._open = None
        self._count = self._total = 0


class StagnationDetector:
    """Counts the same prose among the last prose turns."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._said: deque[int] = deque(maxlen=max(WINDOW_FACTOR * limit, 1))

    def record(self, text: str, made_calls: bool) -> Trip | None:
        """Takes what a reply said. Replies that call tools, and empty ones, are no prose turns."""
        if made_calls or not (said := normalised(text)):
            return None
        key = hash(said)
        self._said.append(key)
        repeats = self._said.count(key)
        return Trip("stagnation", None, repeats, self._limit) if repeats > self._limit else None

    def clear(self) -> None:
        """Forgets what was said."""
        self._said.clear()


class CycleObserver:
    """Sees two to four batches take turns, with the same answers each time. Observed only: nothing acts on it."""

    def __init__(self) -> None:
        self._last: deque[tuple[str, AnswersKey | None]] = deque(maxlen=CYCLE_WINDOW)

    def record(self, signature: str, answers: AnswersKey | None) -> Trip | None:
        """Takes a batch with its answers; the cycle that the last ones make, if they do."""
        self._last.append((signature, answers))
        if answers is None:
            return None
        for period in CYCLE_PERIODS:
            if len(self._last) <= period or self._last[-1 - period] != self._last[-1]:
                continue
            steps = list(self._last)[::-1]
            if repeats := _repeats(steps, period):
                return Trip("cycle", _cycle_signature(steps[:period]), repeats, CYCLE_REPEATS)
        return None


def _repeats(steps: list[tuple[str, AnswersKey | None]], period: int) -> int:
    """Full repeats of the newest `period` steps, newest first; 0 below three, and for one batch over and over."""
    block = steps[:period]
    if len({signature for signature, _ in block}) < 2 or any(answers is None for _, answers in block):
        return 0
    repeats = 0
    while steps[repeats * period : (repeats + 1) * period] == block:
        repeats += 1
    return repeats if repeats >= CYCLE_REPEATS else 0


def _cycle_signature(block: list[tuple[str, AnswersKey | None]]) -> str:
    """The same for a cycle wherever it is entered."""
    signatures = [signature for signature, _ in reversed(block)]
    return " > ".join(min(signatures[at:] + signatures[:at] for at in range(len(signatures))))


def normalised(text: str) -> str:
    """Prose without what makes no difference: width and case of letters, white space. Digits stay: they are progress.

    Texts beyond 65,536 characters are compared as they are.
    """
    if len(text) > NORMALISED_CHARS:
        return text
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
