"""The guard on somebody else's request before it is sent on: scanned, counted, and noted or refused.

Owns the order of these steps and what is told to the log, also that a noted conversation did something else the next
time. What a loop is, `app.guard.scan` knows. A request that can't be read passes. Called by `app.api.openai`.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from app.guard.apply import refusal, with_note
from app.guard.detectors import Limits
from app.guard.detectors import Trip as Tripped
from app.guard.log_records import Scan, Trip, TripOutcome, TripRecord
from app.guard.log_writer import GuardLog
from app.guard.scan import Mode, Verdict, scan
from app.guard.session import session_id
from app.store.loop_guard_log import Environment

NO_MODEL = "-"
"""The name a request is counted under that names no model."""

SESSIONS = 1024
"""Noted conversations that are remembered until their next request."""

Action = Literal["note", "refuse", "observed"]
Finding = Literal["off", "pass", "loop", "stagnation"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What the guard made of a request. `body` is what is to be sent; `refused` the answer in its place.

    `trip` is the log's handle of a decision, for what becomes of it (`GuardLog.settled`).
    """

    verdict: Finding
    body: bytes
    refused: Mapping[str, Any] | None = None
    trip: Trip | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a request is judged by; `environment` is what its decision is counted under, None the process's own."""

    mode: Mode
    limits: Limits
    environment: Environment | None = None


class ProxyGuard:
    """Judges requests. Safe from several threads."""

    def __init__(self, log: GuardLog) -> None:
        self._log = log
        self._noted: OrderedDict[str, tuple[Trip, Tripped]] = OrderedDict()
        self._lock = threading.Lock()

    def judge(self, raw: bytes, body: Mapping[str, Any], terms: Terms, *, session: str | None) -> Judged:
        """Scans a request and decides. Blocks for milliseconds where the conversation is long.

        Args:
            raw: The request as it came; sent on byte for byte unless it gets a note.
            body: The same, parsed.
            session: What the client calls the conversation, if it does.
        """
        mode = terms.mode
        if mode == "off":
            return Judged("off", raw)
        model = body.get("model")
        counted = self._log.scanned(
            "proxy", model if isinstance(model, str) and model else NO_MODEL, mode, terms.environment
        )
        verdict = scan(body.get("messages"), terms.limits, mode=mode)
        named = session_id(session, body.get("messages"))
        if verdict.observed is not None:
            self._log.tripped(_record(counted, verdict.observed, "observed", named))
        if verdict.trip is None:
            self._follow(named, None, None)
            return Judged("pass", raw)
        trip = self._log.tripped(_record(counted, verdict.trip, mode, named))
        self._follow(named, trip, verdict.trip)
        finding = cast("Finding", verdict.trip.detector)
        if mode == "refuse":
            self._log.settled(trip, TripOutcome(outcome="not_sent:refused"))
            return Judged(finding, raw, refusal(verdict), trip)
        noted = _noted(body, verdict)
        if noted is None:
            self._log.settled(trip, TripOutcome(outcome="not_sent:unwritable"))
            return Judged(finding, raw)
        return Judged(finding, noted, trip=trip)

    def _follow(self, session: str | None, trip: Trip | None, tripped: Tripped | None) -> None:
        """Tells the log whether the conversation that was noted last time did something else since."""
        if session is None:
            return
        with self._lock:
            before = self._noted.pop(session, None)
            if trip is not None and tripped is not None:
                self._noted[session] = (trip, tripped)
                if len(self._noted) > SESSIONS:
                    self._noted.popitem(last=False)
        if before is not None:
            again = tripped is not None and _same(before[1], tripped)
            self._log.settled(before[0], TripOutcome(next_turn="same" if again else "changed"))


def _record(
    counted: Scan, trip: Tripped, action: Literal["note", "refuse", "observed"], session: str | None
) -> TripRecord:
    return TripRecord(
        counted,
        trip.detector,
        action,
        signature=trip.signature,
        session=session,
        repeat_count=trip.repeat_count,
        threshold=trip.threshold,
    )


def _same(one: Tripped, other: Tripped) -> bool:
    return (one.detector, one.signature) == (other.detector, other.signature)


def _noted(body: Mapping[str, Any], verdict: Verdict) -> bytes | None:
    """The request with its note; None for one that can be read and yet not be written: nested a little too deeply."""
    try:
        return json.dumps(with_note(body, verdict), separators=(",", ":")).encode("ascii")
    except RecursionError:
        return None
