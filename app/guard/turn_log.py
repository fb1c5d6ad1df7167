"""The guard of one turn with its log: every decision is counted, and what became of a trip is told.

Owns nothing of the judging, which is `app.guard.turn_guard`'s, and nothing of the writing (`app.guard.log_writer`).
Made once per turn by `app.api`, which calls `finish` at its end; the agent calls the rest.
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

from app.guard.detectors import Trip as Tripped
from app.guard.log_records import Scan, Trip, TripOutcome, TripRecord
from app.guard.log_writer import GuardLog
from app.guard.scan import Mode
from app.guard.turn_guard import Call, CallResult, Decision, TurnGuard
from app.store.loop_guard_log import Action, Detector, Environment

UNKNOWN_MODEL = "-"


class LoggedTurnGuard:
    """A `TurnGuard` whose decisions are kept.

    Args:
        model: The model's name as far as it is known when a decision is made; some servers are asked for it first.
        session: What makes this conversation one.
        environment: What decisions are made with, as far as it is known at the time.
    """

    def __init__(
        self,
        guard: TurnGuard,
        log: GuardLog,
        *,
        mode: Mode,
        model: Callable[[], str | None],
        session: str,
        environment: Callable[[], Environment],
    ) -> None:
        self._guard = guard
        self._log = log
        self._mode: Mode = mode
        self._model = model
        self._session = session
        self._environment = environment
        self._counted: Scan | None = None
        self._trips: list[Trip] = []
        self._open: tuple[Trip, Tripped] | None = None
        self.detector: Detector | None = None
        """Whose trip the highest step came from."""

    @property
    def outcome(self) -> Literal["none", "note", "final", "abort"]:
        """The highest step taken so far: `guard=` in the turn's line."""
        return self._guard.outcome

    def begin_reply(self) -> None:
        """A new generation begins."""
        self._guard.begin_reply()

    def feed(self, text: str) -> Decision:
        """Takes visible text as it streams; `abort` once it has run away."""
        decision = self._guard.feed(text)
        return self._kept(decision) if decision.trip else decision

    def check(self, calls: Sequence[Call]) -> Decision:
        """Judges the calls of a reply before any of them runs."""
        return self._kept(self._guard.check(calls))

    def record(self, results: Sequence[CallResult]) -> Decision:
        """Takes the results of the calls that passed."""
        return self._kept(self._guard.record(results))

    def record_text(self, text: str, made_calls: bool) -> Decision:
        """Judges what a reply said once it is complete."""
        return self._kept(self._guard.record_text(text, made_calls))

    def finish(self, *, prompt_tokens: int | None, completion_tokens: int | None, seconds: float) -> None:
        """The turn is over: what it cost stands beside each of its trips."""
        cost = TripOutcome(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, seconds=seconds)
        for trip in self._trips:
            self._log.settled(trip, cost)
        if self._open is not None:
            self._log.settled(self._open[0], TripOutcome(next_turn="none"))
            self._open = None

    def _kept(self, decision: Decision) -> Decision:
        """Counts and records a decision, before it is acted on."""
        if self._mode == "off":
            return decision
        if decision.scanned:
            self._counted = self._count()
            self._follow(decision.trip)
        if decision.observed is not None:
            self._trip(decision.observed, "observed")
        if decision.trip is not None and decision.action != "pass":
            trip = self._trip(decision.trip, decision.action)
            self._log.settled(trip, TripOutcome(outcome="delivered"))
            self._open = (trip, decision.trip)
            self.detector = decision.trip.detector
        return decision

    def _follow(self, tripped: Tripped | None) -> None:
        """The round after a trip: did the model do something else?"""
        if self._open is None:
            return
        trip, before = self._open
        again = tripped is not None and (tripped.detector, tripped.signature) == (before.detector, before.signature)
        self._log.settled(trip, TripOutcome(next_turn="same" if again else "changed"))
        self._open = None

    def _trip(self, tripped: Tripped, action: Action) -> Trip:
        trip = self._log.tripped(
            TripRecord(
                self._counted or self._count(),
                tripped.detector,
                action,
                signature=tripped.signature,
                session=self._session,
                repeat_count=tripped.repeat_count,
                threshold=tripped.threshold,
            )
        )
        self._trips.append(trip)
        return trip

    def _count(self) -> Scan:
        mode = cast("Literal['note', 'refuse']", self._mode)
        return self._log.scanned("agent", self._model() or UNKNOWN_MODEL, mode, self._environment())
