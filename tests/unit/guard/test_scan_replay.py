"""The stateless scan says what the stateful detectors say when they are told the same story step by step.

Stories are random; a third voice, written from the rules alone and sharing no code with the guard, has to agree with
both. 3,000 stories, 30,000 with `DOCENT_LONG=1`.
"""

import json
import os
import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from app.guard.answers import answers_key
from app.guard.detectors import Limits, LoopDetector, StagnationDetector, Trip
from app.guard.effects import BatchClass
from app.guard.scan import Mode, scan
from app.guard.signature import batch_signature, call_signature
from tests.unit.guard.talk import Message, Talk

STORIES = 30_000 if os.environ.get("DOCENT_LONG") else 3_000
PARTS = 30
TOOLS = {"write_file": "strict", "run": "strict", "read_file": "look", "click": "costly"}
PROSE = ["Let me check.", "LET  me check. ", "Step 1.", "Step 2.", ""]
MODES: tuple[Mode, ...] = ("note", "refuse")


@dataclass(frozen=True)
class Event:
    """A step of a story: prose, a batch with its results (None = unknown), a user's or another message."""

    kind: str
    text: str = ""
    calls: tuple[tuple[str, int], ...] = ()
    results: tuple[str, ...] | None = None


@dataclass
class Story:
    limits: Limits
    events: list[Event] = field(default_factory=list[Event])

    @property
    def judged(self) -> list[Event]:
        last = max((at for at, event in enumerate(self.events) if event.kind == "user"), default=-1)
        return self.events[last + 1 :]


def story(rng: random.Random) -> Story:
    """Few tools, few arguments and sticky choices, so that repeats are common."""
    allowance = rng.choice([15, 15, 3, 1, None])
    told = Story(Limits(rng.choice([2, 2, 1, 0, 4]), rng.choice([5, 1, 2, 0]), allowance))
    batch: tuple[tuple[str, int], ...] = (("write_file", 0),)
    moving = rng.random() < 0.4
    for at in range(rng.randint(1, 45)):
        chance = rng.random()
        if chance < 0.04:
            told.events.append(Event(rng.choice(["user", "user", "system", "other"])))
        elif chance < 0.25:
            told.events.append(Event("prose", rng.choice(PROSE)))
        else:
            if rng.random() < 0.2:
                batch = tuple((rng.choice(list(TOOLS)), rng.randint(0, 1)) for _ in range(rng.choice([1, 1, 1, 2])))
                moving = rng.random() < 0.4
            results = tuple(str(at if moving else 0) for _ in batch) if rng.random() < 0.93 else None
            told.events.append(Event("batch", rng.choice(PROSE), batch, results))
    return told


def messages_of(told: Story) -> list[Message]:
    talk = Talk(question=None)
    for event in told.events:
        match event.kind:
            case "user":
                talk.user("Go on.")
            case "prose":
                talk.say(event.text)
            case "batch":
                calls: list[tuple[str, Any]] = [(name, {"n": n, "same": [1]}) for name, n in event.calls]
                talk.calls(*calls, results=list(event.results) if event.results else None, text=event.text)
            case other:
                talk.messages.append({"role": other, "content": "x"})
    return talk.messages


def class_of(event: Event) -> BatchClass:
    kinds = [TOOLS[name] for name, _ in event.calls]
    return BatchClass(observation="strict" not in kinds, costly="costly" in kinds)


def replay(told: Story) -> dict[Mode, Trip | None]:
    """Told to the detectors as the agent would."""
    assert told.limits.strikes is not None
    assert told.limits.stagnation is not None
    loop, prose = LoopDetector(told.limits.strikes, told.limits.allowance), StagnationDetector(told.limits.stagnation)
    first = looping = stagnating = None
    for event in told.judged:
        if event.kind == "prose":
            stagnating = prose.record(event.text, made_calls=False)
            first = first or stagnating
        elif event.kind == "batch":
            prose.record(event.text, made_calls=True)
            signatures = [call_signature(name, json.dumps({"same": [1], "n": n})) for name, n in event.calls]
            step = loop.check(batch_signature(signatures), class_of(event))
            loop.record(step, answers_key(signatures, event.results or ()))
            stagnating, looping = None, step.trip
            first = first or looping
        else:
            loop.clear()
            prose.clear()
            looping = stagnating = None
    return {"note": stagnating or looping, "refuse": first}


Seen = tuple[str, int, int]


def by_the_rules(told: Story) -> dict[Mode, Seen | None]:
    """What trips, judged event by event from lists of what came before; nothing is carried along."""
    found: list[Seen | None] = []
    state: list[Seen | None] = []
    judged = told.judged
    for at, event in enumerate(judged):
        since = max((one for one in range(at) if judged[one].kind not in ("prose", "batch")), default=-1) + 1
        before = judged[since : at + 1]
        if event.kind == "prose":
            found.append(stagnation_by_the_rules(before, told.limits.stagnation or 0))
            state.append(found[-1] or loop_by_the_rules(before, told.limits))
        else:
            found.append(loop_by_the_rules(before, told.limits) if event.kind == "batch" else None)
            state.append(found[-1])
    return {"note": state[-1] if state else None, "refuse": next(filter(None, found), None)}


def stagnation_by_the_rules(events: list[Event], limit: int) -> Seen | None:
    said = [" ".join(event.text.lower().split()) for event in events if event.kind == "prose"]
    said = [text for text in said if text][-max(4 * limit, 1) :]
    if not events[-1].text.strip():
        return None
    count = sum(text == said[-1] for text in said)
    return ("stagnation", count, limit) if count > limit else None


def loop_by_the_rules(events: list[Event], limits: Limits) -> Seen | None:
    """The run of the last batch: how long, and how long since its known answers last differed."""
    batches = [event for event in events if event.kind == "batch"]
    if not batches:
        return None
    key = sorted(batches[-1].calls)
    length = next((n for n, event in enumerate(reversed(batches)) if sorted(event.calls) != key), len(batches))
    run = batches[len(batches) - length :]
    count = len(run)
    for since, (one, other) in enumerate(pairwise(run)):
        known = one.results is not None and other.results is not None
        if known and answers_by_the_rules(one) != answers_by_the_rules(other) and other is not run[-1]:
            count = len(run) - since - 1
    strikes = limits.strikes or 0
    kind = class_of(batches[-1])
    free = kind.observation and limits.allowance is not None
    limit = limits.allowance if free and limits.allowance is not None else strikes
    ceiling = max(strikes if limits.allowance is None else limits.allowance, strikes)
    if count > limit:
        return ("loop", count, limit)
    if len(run) > ceiling and (kind.costly or not free):
        return ("loop", len(run), ceiling)
    return None


def answers_by_the_rules(event: Event) -> list[tuple[tuple[str, int], str]]:
    assert event.results is not None
    return sorted(zip(event.calls, event.results, strict=True))


def seen(trip: Trip | None) -> Seen | None:
    return (trip.detector, trip.repeat_count, trip.threshold) if trip else None


@pytest.mark.parametrize("part", range(PARTS))
def test_P34_scan_detectors_and_rules_agree(part: int) -> None:
    """On every story, in both modes, to the count."""
    rng = random.Random(1000 + part)
    tripped = 0
    for number in range(STORIES // PARTS):
        told = story(rng)
        messages, stateful, ruled = messages_of(told), replay(told), by_the_rules(told)
        for mode in MODES:
            trip = scan(messages, told.limits, mode=mode).trip
            assert trip == stateful[mode], (part, number, mode)
            assert seen(trip) == ruled[mode], (part, number, mode)
            tripped += trip is not None

    assert STORIES // PARTS * 0.2 < tripped < STORIES // PARTS * 1.9
