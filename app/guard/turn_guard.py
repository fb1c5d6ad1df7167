"""Watches the rounds of one turn: asked before tools run, told what they answered, it gives the next step.

Owns the ladder (note, then final answer; abort for text that has run away) of one turn and the detectors' state; the
agent does what a decision says and logs it. One per turn. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.guard.answers import answers_key
from app.guard.detectors import CycleObserver, LoopDetector, StagnationDetector, Step, Trip
from app.guard.effects import Effect, batch_class
from app.guard.notes import note_for_turn
from app.guard.requery import SEARCHES, RequeryDetector
from app.guard.runaway import REPEATS, RunawayCheck
from app.guard.scan import Mode
from app.guard.signature import batch_signature, call_signature

Action = Literal["pass", "note", "final", "abort"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call the model asks for: `arguments` is the raw JSON text, `effect` what the tool's registry declares."""

    name: str
    arguments: str
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call gave: the result as the model reads it, and for a search the chunks it brought, best first."""

    answer: object
    chunk_ids: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and what the log needs to know.

    `pass`: go on. `note`: `note` is the result of the calls at `positions`. `final`: ask once more without tools.
    `abort`: end the turn with `loop_guard`, its text kept. `scanned` decisions are the denominator: one per round.
    `observed` was seen but is never acted on.
    """

    action: Action = "pass"
    scanned: bool = False
    trip: Trip | None = None
    note: str = ""
    positions: tuple[int, ...] = ()
    observed: Trip | None = None
    rescued: bool = False


QUIET = Decision()
"""Nothing was judged."""


class TurnGuard:
    """The guard of one turn.

    `strikes` and `stagnation` are thresholds (None = that detector off), `allowance` the larger one for batches that
    only look (None = the tier is off, as in Docent's own turns: what its tools read doesn't change within a turn).
    `searches` names the tools that search, each with its query argument. Mode `off` judges nothing.
    """

    def __init__(
        self,
        mode: Mode,
        *,
        strikes: int | None = 2,
        stagnation: int | None = 5,
        allowance: int | None = None,
        searches: Mapping[str, str] = SEARCHES,
    ) -> None:
        self._mode: Mode = mode
        self._loop = None if strikes is None else LoopDetector(strikes, allowance)
        self._prose = None if stagnation is None else StagnationDetector(stagnation)
        self._requery = RequeryDetector(searches)
        self._cycle = CycleObserver()
        self._cycling = False
        self._runaway = RunawayCheck()
        self._running: _Running | None = None
        self.outcome: Literal["none", "note", "final", "abort"] = "none"
        """The highest step taken so far: `guard=` in the turn's line."""

    @property
    def active(self) -> bool:
        """Whether this guard judges at all."""
        return self._mode != "off"

    def check(self, calls: Sequence[Call]) -> Decision:
        """Judges the batch of a reply, before any of it runs. Unless it passes, none of it may run.

        An empty batch isn't judged: that round is `record_text`'s.
        """
        self._running = None
        if not self.active or not calls:
            return QUIET
        signatures = [call_signature(call.name, call.arguments) for call in calls]
        signature = batch_signature(signatures)
        requery = self._requery.check([(call.name, call.arguments) for call in calls], signature)
        step = self._loop.check(signature, batch_class(calls)) if self._loop else None
        trip = requery or (step.trip if step else None)
        if trip:
            return self._climb(trip, tuple(range(len(calls))), scanned=True)
        self._running = _Running(signatures, signature, step)
        return Decision(scanned=True, rescued=step is not None and step.rescued)

    def record(self, results: Sequence[CallResult]) -> Decision:
        """Takes the results of the batch that passed last, one per call in order, before the model reads them.

        `note`: the calls at `positions` were searches that brought what an earlier search of the turn had brought; the
        note takes their results' place.
        """
        running, self._running = self._running, None
        if running is None:
            return QUIET
        key = answers_key(running.signatures, [result.answer for result in results])
        if self._loop and running.step:
            self._loop.record(running.step, key)
        cycle = self._cycle.record(running.signature, key)
        observed = None if self._cycling else cycle
        self._cycling = cycle is not None
        trip, positions = self._requery.record([result.chunk_ids for result in results], running.signature)
        return self._climb(trip, positions, observed=observed) if trip else Decision(observed=observed)

    def record_text(self, text: str, made_calls: bool) -> Decision:
        """Judges what a reply said once it is complete. A reply with calls is `check`'s round, and passes here.

        A trip climbs the same ladder; there is no call to give a note to, so a `note` here changes nothing but the
        next step.
        """
        if not self.active or made_calls:
            return QUIET
        trip = self._prose.record(text, made_calls) if self._prose else None
        return self._climb(trip, (), scanned=True) if trip else Decision(scanned=True)

    def begin_reply(self) -> None:
        """A new generation begins: what the last one said doesn't count towards its running away."""
        self._runaway = RunawayCheck()

    def feed(self, text: str) -> Decision:
        """Takes visible text as it streams. `abort` once the generation has run away, whatever the ladder's step."""
        if not self.active or not self._runaway.feed(text):
            return QUIET
        self.outcome = "abort"
        return Decision("abort", trip=Trip("stagnation", None, REPEATS, REPEATS - 1))

    def _climb(
        self, trip: Trip, positions: tuple[int, ...], *, scanned: bool = False, observed: Trip | None = None
    ) -> Decision:
        """The next step: a note once and only in mode `note`, then the final answer."""
        if self._mode == "note" and self.outcome == "none":
            self.outcome = "note"
            return Decision("note", scanned, trip, note_for_turn(trip), positions, observed)
        self.outcome = "final"
        return Decision("final", scanned, trip, "", positions, observed)


@dataclass(frozen=True, slots=True)
class _Running:
    signatures: list[str]
    signature: str
    step: Step | None
