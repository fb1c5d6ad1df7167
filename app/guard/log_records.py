"""What those who decide hand to the loop guard's log, and how it becomes a row.

Owns the values of the log's interface and what is kept of them: keys instead of texts, numbers within bounds. Raw
signatures and sessions end here. Writing is `app.guard.log_writer`'s.
"""

import math
from dataclasses import dataclass
from typing import Literal

from app.store.loop_guard_log import (
    Action,
    Detector,
    LoopGuardTripEvent,
    NextTurn,
    ScanKey,
    short_hash,
)

COUNT_LIMIT = 2**53
OUTCOME_LIMIT = 60
"""Characters of an outcome."""

TripState = Literal["queued", "taken", "written", "lost"]


@dataclass(frozen=True, slots=True)
class Scan:
    """One request that was scanned: when (seconds since the epoch) and what it is counted under. A trip refers to it,
    so that the two can't disagree."""

    at: int
    key: ScanKey


@dataclass(frozen=True, slots=True)
class TripRecord:
    """One decision. `signature` and `session` are given as they are and kept as keys. For `loop` no numbers are kept,
    for `stagnation` no signature, which would be a key of what was said."""

    scan: Scan
    detector: Detector
    action: Action
    signature: str | None = None
    session: str | None = None
    repeat_count: int | None = None
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class TripOutcome:
    """What became of a decision, as far as it is known by now; None leaves what was known before.

    `outcome` is `delivered` or `not_sent:<why>`; `next_turn` whether the model then did something else; tokens and
    `seconds` are the cost of the request or round that tripped.
    """

    outcome: str | None = None
    next_turn: NextTurn | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None

    def facts(self) -> dict[str, object]:
        """The columns that are known."""
        known: dict[str, object | None] = {
            "outcome": self.outcome[:OUTCOME_LIMIT] if self.outcome else None,
            "next_turn": self.next_turn,
            "prompt_tokens": _count(self.prompt_tokens),
            "completion_tokens": _count(self.completion_tokens),
            "seconds": self.seconds if self.seconds is not None and math.isfinite(self.seconds) else None,
        }
        return {name: value for name, value in known.items() if value is not None}


class Trip:
    """A decision on its way into the log: what `GuardLog.settled` takes. Its fields are the queue's."""

    __slots__ = ("event", "row_id", "state")

    def __init__(self, event: LoopGuardTripEvent) -> None:
        self.event = event
        self.state: TripState = "queued"
        self.row_id: int | None = None


def event_of(record: TripRecord, key: bytes) -> LoopGuardTripEvent:
    """The row of a decision."""
    scanned, detector = record.scan.key, record.detector
    signature = None if detector == "stagnation" else record.signature
    counts = detector != "loop"
    return LoopGuardTripEvent(
        recorded_at=record.scan.at,
        path=scanned.path,
        model_name=scanned.model_name,
        app_version=scanned.app_version,
        mode=scanned.mode,
        detector=detector,
        action=record.action,
        env_id=scanned.env_id,
        signature_hash=short_hash(key, signature) if signature else None,
        session_hash=short_hash(key, record.session) if record.session else None,
        repeat_count=_count(record.repeat_count) if counts else None,
        threshold=_count(record.threshold) if counts else None,
    )


def _count(value: int | None) -> int | None:
    """Within what any database and any JSON reader can hold; a server may claim anything."""
    return None if value is None else min(max(value, 0), COUNT_LIMIT)
