"""Judges a whole conversation, as a client sends it with every request: stateless, and never in the way. Pure.

Only what follows the last user message is judged; what can't be read passes. `scan` replays the messages through the
same detectors that watch Docent's own turns. Called by the `/v1` path before a request is sent on.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal, NamedTuple

from app.guard.batches import Batches, signatures
from app.guard.detectors import (
    CYCLE_REPEATS,
    CYCLE_WINDOW,
    CycleObserver,
    Limits,
    LoopDetector,
    StagnationDetector,
    Step,
    Trip,
)
from app.guard.effects import batch_class
from app.guard.signature import batch_signature
from app.guard.transcript import Message, Role, SentCall, message_list, role_of, text_of

Mode = Literal["off", "note", "refuse"]

DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a scan found. `trip` is to be acted on, `observed` only counted.

    The flags are about the newest batch, while nothing but its results follows it: it was made before in this
    conversation with the same results; or with results that can't be compared; it passed only because results had
    moved; its results differ from the last only in times, durations and addresses.
    """

    scanned: bool = False
    trip: Trip | None = None
    observed: Trip | None = None
    identical_result_repeat: bool = False
    repeat_not_evaluated: bool = False
    repeat_rescued: bool = False
    masked_result_repeat: bool = False


def scan(messages: object, limits: Limits = DEFAULT_LIMITS, *, mode: Mode = "note") -> Verdict:
    """The verdict on `messages`, any JSON value. Never raises.

    In mode `refuse` the first trip counts; in mode `note` only one that the conversation still ends in: a model that
    has moved on needs no note. Mode `off`, or no thresholds, looks at nothing.
    """
    if mode == "off" or (limits.strikes is None and limits.stagnation is None):
        return Verdict()
    listed = message_list(messages)
    if not listed:
        return Verdict(scanned=True)
    roles: list[Role] = []
    for message in reversed(listed):
        if (role := role_of(message)) == "user":
            break
        roles.append(role)
    begin = len(listed) - len(roles)
    walk = _Walk(listed, limits, begin)
    for at, role in enumerate(reversed(roles), begin):
        walk.take(at, role)
    trip = walk.first if mode == "refuse" else walk.current
    return walk.verdict(trip)


class _Newest(NamedTuple):
    """The newest batch: where it is, where it was before in what is judged, and how the loop detector took it."""

    at: int
    signature: str
    before: int | None
    step: Step | None


class _Walk:
    """The detectors' state after some messages.

    Results are read only where a batch comes back, and what is kept of a message is its place: a long conversation of
    ever new batches costs little more than their signatures.
    """

    def __init__(self, messages: list[Message], limits: Limits, begin: int) -> None:
        self._messages = messages
        self._batches = Batches(messages, limits.mask_answers)
        self._begin = begin
        self._observations = limits.observations
        self._loop = None if limits.strikes is None else LoopDetector(limits.strikes, limits.allowance)
        self._prose = None if limits.stagnation is None else StagnationDetector(limits.stagnation)
        self._looping: Trip | None = None
        self._stagnating: Trip | None = None
        self._places: dict[str, int] = {}
        self._recent: deque[tuple[str, int]] = deque(maxlen=CYCLE_WINDOW)
        self._made: list[str] = []
        self._newest: _Newest | None = None
        self._step: Step | None = None
        self.first: Trip | None = None

    @property
    def current(self) -> Trip | None:
        """The trip that the messages so far end in."""
        return self._stagnating or self._looping

    def take(self, at: int, role: Role) -> None:
        """Goes on by one message. Results and Docent's own notes break nothing."""
        if role == "assistant":
            if calls := self._batches.calls(at):
                self._batch(at, calls)
            else:
                self._speech(at)
            self.first = self.first or self.current
        elif role != "tool":
            self._break()

    def verdict(self, trip: Trip | None) -> Verdict:
        """The trip, and what there is to say about the newest batch."""
        newest, batches = self._newest, self._batches
        if newest is None:
            return Verdict(scanned=True, trip=trip)
        before = batches.last_before(self._begin, newest.at) if newest.before is None else newest.before
        key = batches.key(newest.at)
        last = None if before is None else batches.key(before)
        known = key is not None and last is not None
        return Verdict(
            scanned=True,
            trip=trip,
            observed=self._cycle(newest),
            identical_result_repeat=known and key == last,
            repeat_not_evaluated=before is not None and not known,
            repeat_rescued=trip is None and newest.step is not None and newest.step.rescued,
            masked_result_repeat=before is not None
            and known
            and key != last
            and batches.key(before, masked=True) == batches.key(newest.at, masked=True),
        )

    def _batch(self, at: int, calls: list[SentCall]) -> None:
        made = signatures(calls)
        named = batch_signature(made)
        self._stagnating = None
        if self._loop:
            self._answer(named)
            self._step = self._loop.check(named, batch_class(calls, self._observations))
            self._looping = self._step.trip
        self._newest = _Newest(at, named, self._places.get(named), self._step)
        self._places[named] = at
        self._recent.append((named, at))
        self._made = made

    def _answer(self, named: str) -> None:
        """Hands in the last batch's results if the same comes again: any other begins a run that forgets them."""
        if self._loop and self._step and self._recent and self._recent[-1][0] == named:
            self._loop.record(self._step, self._batches.key(self._recent[-1][1], self._made))

    def _speech(self, at: int) -> None:
        self._newest = None
        self._stagnating = self._prose.record(text_of(self._messages[at]), made_calls=False) if self._prose else None

    def _break(self) -> None:
        if self._loop:
            self._loop.clear()
        if self._prose:
            self._prose.clear()
        self._recent.clear()
        self._looping = self._stagnating = self._newest = None

    def _cycle(self, newest: _Newest) -> Trip | None:
        if sum(named == newest.signature for named, _ in self._recent) < CYCLE_REPEATS:
            return None
        observer, seen = CycleObserver(), None
        for named, at in self._recent:
            seen = observer.record(named, self._batches.key(at))
        return seen
