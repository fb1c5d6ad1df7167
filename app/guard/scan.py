"""Judges a whole conversation, as a client sends it with every request: stateless, and never in the way. Pure.

Only what follows the last user message is judged; what can't be read passes. `scan` replays the messages through the
same detectors that watch Docent's own turns. Called by the `/v1` path before a request is sent on.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from app.guard.answers import AnswersKey, answers_key
from app.guard.detectors import CycleObserver, Limits, LoopDetector, StagnationDetector, Step, Trip
from app.guard.effects import batch_class
from app.guard.signature import batch_signature, call_signature
from app.guard.transcript import Message, SentCall, answers_of, calls_of, message_list, role_of, text_of

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


class _Batch(NamedTuple):
    calls: list[SentCall]
    signatures: list[str]
    signature: str
    answers: list[object] | None
    key: AnswersKey | None


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
    begin = next((at + 1 for at in range(len(listed) - 1, -1, -1) if role_of(listed[at]) == "user"), 0)
    walk = _Walk(listed, limits, begin)
    for at in range(begin, len(listed)):
        walk.take(at)
    trip = walk.first if mode == "refuse" else walk.current
    return walk.verdict(trip)


class _Walk:
    """The detectors' state after some messages."""

    def __init__(self, messages: list[Message], limits: Limits, begin: int) -> None:
        self._messages = messages
        self._begin = begin
        self._limits = limits
        self._loop = None if limits.strikes is None else LoopDetector(limits.strikes, limits.allowance)
        self._prose = None if limits.stagnation is None else StagnationDetector(limits.stagnation)
        self._cycle = CycleObserver()
        self._looping: Trip | None = None
        self._stagnating: Trip | None = None
        self._seen: dict[str, _Batch] = {}
        self._newest: tuple[_Batch, _Batch | None, Step | None] | None = None
        self._cycling: Trip | None = None
        self.first: Trip | None = None

    @property
    def current(self) -> Trip | None:
        """The trip that the messages so far end in."""
        return self._stagnating or self._looping

    def take(self, at: int) -> None:
        """Goes on by one message. Results and Docent's own notes break nothing."""
        match role_of(self._messages[at]):
            case "assistant":
                self._assistant(at)
            case "tool":
                pass
            case _:
                self._break()

    def verdict(self, trip: Trip | None) -> Verdict:
        """The trip, and what there is to say about the newest batch."""
        if self._newest is None:
            return Verdict(scanned=True, trip=trip)
        batch, seen, step = self._newest
        before = seen or self._before(batch)
        known = before is not None and before.key is not None and batch.key is not None
        same = known and before is not None and before.key == batch.key
        return Verdict(
            scanned=True,
            trip=trip,
            observed=self._cycling,
            identical_result_repeat=same,
            repeat_not_evaluated=before is not None and not known,
            repeat_rescued=trip is None and step is not None and step.rescued,
            masked_result_repeat=known and not same and before is not None and _masked(before) == _masked(batch),
        )

    def _assistant(self, at: int) -> None:
        calls = calls_of(self._messages[at])
        if not calls:
            self._newest = self._cycling = None
        text = "" if calls or self._prose is None else text_of(self._messages[at])
        self._stagnating = self._prose.record(text, bool(calls)) if self._prose else None
        if calls:
            self._batch(at, calls)
        self.first = self.first or self._stagnating or (self._looping if calls else None)

    def _batch(self, at: int, calls: list[SentCall]) -> None:
        batch = self._read(at, calls)
        step = None
        if self._loop:
            step = self._loop.check(batch.signature, batch_class(calls, self._limits.observations))
            self._loop.record(step, batch.key)
            self._looping = step.trip
        self._cycling = self._cycle.record(batch.signature, batch.key)
        self._newest = (batch, self._seen.get(batch.signature), step)
        self._seen[batch.signature] = batch

    def _break(self) -> None:
        for detector in (self._loop, self._prose, self._cycle):
            if detector:
                detector.clear()
        self._looping = self._stagnating = self._newest = self._cycling = None

    def _read(self, at: int, calls: list[SentCall]) -> _Batch:
        signatures = [call_signature(call.name, call.arguments) for call in calls]
        end = at + 1
        while end < len(self._messages) and self._messages[end].get("role") == "tool":
            end += 1
        answers = answers_of(calls, self._messages[at + 1 : end])
        key = answers_key(signatures, answers, masked=self._limits.mask_answers)
        return _Batch(calls, signatures, batch_signature(signatures), answers, key)

    def _before(self, newest: _Batch) -> _Batch | None:
        """The same batch's last occurrence before what is judged. Names are compared first: they are there,
        signatures have to be made."""
        names = sorted(call.name for call in newest.calls)
        for earlier in range(self._begin - 1, -1, -1):
            message = self._messages[earlier]
            if role_of(message) != "assistant" or not (calls := calls_of(message)):
                continue
            if sorted(call.name for call in calls) != names:
                continue
            batch = self._read(earlier, calls)
            if batch.signature == newest.signature:
                return batch
        return None


def _masked(batch: _Batch) -> AnswersKey | None:
    return answers_key(batch.signatures, batch.answers, masked=True)
