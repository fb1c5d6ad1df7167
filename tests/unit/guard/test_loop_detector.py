"""The same batch in a row: how often is fine, for which kind of batch, and what its answers change."""

from collections.abc import Sequence
from itertools import cycle, islice

import pytest

from app.guard.answers import answers_key
from app.guard.detectors import Answered, LoopDetector, Step
from app.guard.effects import STRICT, BatchClass

LOOK = BatchClass(observation=True, costly=False)
COSTLY = BatchClass(observation=True, costly=True)


def run(
    batches: Sequence[str],
    answers: Sequence[int | None] | None = None,
    kind: BatchClass = STRICT,
    detector: LoopDetector | None = None,
) -> list[Step]:
    """Each batch checked and answered in turn; by default every answer is the same."""
    detector = detector or LoopDetector(2)
    steps: list[Step] = []
    for batch, answer in zip(batches, answers or [7] * len(batches), strict=True):
        step = detector.check(batch, kind)
        detector.record(step, answer)
        steps.append(step)
    return steps


def tripped(steps: list[Step]) -> list[int]:
    """Which occurrences tripped, counted from 1."""
    return [at for at, step in enumerate(steps, 1) if step.trip]


@pytest.mark.parametrize(("strikes", "times", "expected"), [(2, 2, []), (2, 3, [3]), (0, 1, [1]), (1, 2, [2])])
def test_L3_the_third_of_the_same_batch_trips(strikes: int, times: int, expected: list[int]) -> None:
    """Two are fine; with no strikes not even one is."""
    assert tripped(run(["a"] * times, detector=LoopDetector(strikes))) == expected


def test_L3_a_trip_says_what_was_counted() -> None:
    """Detector, batch, count and threshold."""
    trip = run(["a"] * 3)[-1].trip

    assert trip
    assert (trip.detector, trip.signature, trip.repeat_count, trip.threshold) == ("loop", "a", 3, 2)


def test_L4_batches_that_alternate_never_trip() -> None:
    """Nor do other arguments each time."""
    assert tripped(run(list(islice(cycle("ab"), 100)))) == []
    assert tripped(run([str(at) for at in range(100)])) == []


@pytest.mark.parametrize(("batches", "expected"), [("aabaaa", [6]), ("aabbb", [5])])
def test_L5_another_batch_begins_a_new_run(batches: str, expected: list[int]) -> None:
    """The count starts at one again."""
    assert tripped(run(list(batches))) == expected


@pytest.mark.parametrize(("kind", "expected"), [(LOOK, [6]), (STRICT, [3, 4, 5, 6])])
def test_L6_a_batch_that_only_looks_has_the_allowance(kind: BatchClass, expected: list[int]) -> None:
    """Five here; a mixed batch is strict."""
    assert tripped(run(["a"] * 6, kind=kind, detector=LoopDetector(2, 5))) == expected


def test_L7_new_answers_let_a_batch_go_on() -> None:
    """Ten new ones, or twelve that alternate."""
    assert tripped(run(["a"] * 10, list(range(10)))) == []
    assert tripped(run(["a"] * 12, list(islice(cycle([1, 2]), 12)))) == []


@pytest.mark.parametrize("answer", [1, None])
def test_L8_equal_or_unknown_answers_let_the_count_grow(answer: int | None) -> None:
    """What can't be compared is no progress."""
    assert tripped(run(["a"] * 3, [answer] * 3)) == [3]


def test_L9_the_count_begins_anew_with_the_last_change() -> None:
    """1, 2, 2, 2: the fourth is the third of the same."""
    assert tripped(run(["a"] * 4, [1, 2, 2, 2])) == [4]


def test_L10_a_batch_that_changes_things_ends_at_the_ceiling_even_with_moving_answers() -> None:
    """Fifteen pass, the sixteenth trips, and the trip says that answers moved."""
    steps = run(["a"] * 16, list(range(16)))

    assert tripped(steps) == [16]
    assert steps[-1].trip
    assert (steps[-1].trip.repeat_count, steps[-1].trip.threshold, steps[-1].trip.moved) == (16, 15, True)


def test_L11_free_reading_with_moving_answers_goes_on_for_ever() -> None:
    """It costs nothing and learns something."""
    assert tripped(run(["a"] * 100, list(range(100)), LOOK)) == []


@pytest.mark.parametrize("answers", [list(range(16)), [1] * 16])
def test_L12_a_costly_look_ends_at_the_ceiling(answers: list[int]) -> None:
    """Whether its answers move or not."""
    assert tripped(run(["a"] * 16, answers, COSTLY)) == [16]


@pytest.mark.parametrize("kind", [LOOK, STRICT])
def test_L13_without_the_tier_the_third_trips_for_both_kinds(kind: BatchClass) -> None:
    """Moving answers or not: this is how Docent's own turns are watched."""
    assert tripped(run(["a"] * 3, [1, 2, 3], kind, LoopDetector(2, None))) == [3]


@pytest.mark.parametrize("allowance", [0, 1])
def test_L13_a_small_allowance_leaves_a_strict_batch_its_strikes(allowance: int) -> None:
    """It tightens observations only."""
    assert tripped(run(["a"] * 3, detector=LoopDetector(2, allowance))) == [3]
    assert tripped(run(["a"] * 2, kind=LOOK, detector=LoopDetector(2, allowance)))[0] == allowance + 1


def test_L14_answers_are_compared_with_the_same_batchs_last() -> None:
    """First of a run: nothing to compare; then repeated or changed; unknown is not comparable."""
    detector = LoopDetector(9)
    outcomes = [detector.record(detector.check("a", STRICT), answers) for answers in (1, 1, 2, None, 2)]

    assert outcomes == [
        Answered.NOT_COMPARABLE,
        Answered.REPEATED,
        Answered.CHANGED,
        Answered.NOT_COMPARABLE,
        Answered.NOT_COMPARABLE,
    ]


def test_L14_answers_that_come_after_another_batch_are_ignored() -> None:
    """So are answers that come twice."""
    detector = LoopDetector(9)
    late = detector.check("a", STRICT)
    now = detector.check("b", STRICT)

    assert detector.record(late, 1) is Answered.NOT_CURRENT
    assert detector.record(now, 1) is Answered.NOT_COMPARABLE
    assert detector.record(now, 2) is Answered.NOT_CURRENT


def test_L15_a_batch_is_rescued_where_only_moving_answers_let_it_pass() -> None:
    """The third to the fifteenth; never the first two, nor the refused sixteenth."""
    steps = run(["a"] * 16, list(range(16)))

    assert [at for at, step in enumerate(steps, 1) if step.rescued] == list(range(3, 16))


def test_clearing_ends_the_run() -> None:
    """Whatever happened in between, the next is a first."""
    detector = LoopDetector(2)
    run(["a"] * 2, detector=detector)
    detector.clear()

    assert tripped(run(["a"] * 2, detector=detector)) == []


def test_answers_are_unknown_unless_there_is_one_per_call() -> None:
    """Too few, or too many."""
    assert answers_key(["a:1", "b:2"], ["x"]) is None
    assert answers_key(["a:1"], ["x", "y"]) is None


def test_a_text_and_a_value_of_the_same_spelling_are_different_answers() -> None:
    """`null` is not "null"."""
    keys = {answers_key(["a:1"], [answer]) for answer in (None, "null", "", [], "[]", {}, {"a": 1}, '{"a":1}', 1, "1")}

    assert len(keys) == 10


def test_an_answer_belongs_to_its_call() -> None:
    """The order of calls plays no part, whose answer it is does."""
    assert answers_key(["a:1", "b:2"], ["x", "y"]) == answers_key(["b:2", "a:1"], ["y", "x"])
    assert answers_key(["a:1", "b:2"], ["x", "y"]) != answers_key(["a:1", "b:2"], ["y", "x"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-01-31T12:00:00Z ok", "at 2026-02-01T08:15:30.5+01:00 ok"),
        ("took 1.25 s", "took 980 ms"),
        ("object at 0x7f3a00", "object at 0x11"),
        ("stamp 1767225600", "stamp 1767225601123"),
        ("12:00:01 up", "12:00:02 up"),
    ],
)
def test_a_masked_key_takes_moving_figures_for_equal(one: str, other: str) -> None:
    """A clock in the output is no news; in a value neither."""
    assert answers_key(["a:1"], [one], masked=True) == answers_key(["a:1"], [other], masked=True)
    assert answers_key(["a:1"], [{"t": one}], masked=True) == answers_key(["a:1"], [{"t": other}], masked=True)
    assert answers_key(["a:1"], [one]) != answers_key(["a:1"], [other])


@pytest.mark.parametrize(("one", "other"), [("step 1 of 3", "step 2 of 3"), ("12 servers", "13 servers")])
def test_a_masked_key_keeps_what_may_be_progress(one: str, other: str) -> None:
    """Plain numbers count."""
    assert answers_key(["a:1"], [one], masked=True) != answers_key(["a:1"], [other], masked=True)
