"""Background work waits while a turn streams, and goes anyway after its time."""

import threading
from collections.abc import Callable

import pytest

from app.clock import SystemClock
from app.ingest.yielding import HELD_S, LATELY_S, SLICE_S, YIELD_MAX_S, Ahead, TurnsFirst, Yielding


class PacedClock(SystemClock):
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        self.passed += 1
        return self.passed


class SetClock(SystemClock):
    """Stands at `at`."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


class Busy:
    """Busy for a number of looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        self.left -= 1
        return self.left >= 0


def test_nothing_going_on_is_no_wait() -> None:
    """One look, and on with it."""
    busy = Busy(0)

    assert Yielding(PacedClock(), busy, threading.Event()).give_way()
    assert busy.looks == 1


def test_it_goes_on_as_soon_as_the_turn_has_ended() -> None:
    """However long it might have waited."""
    busy = Busy(3)

    assert Yielding(PacedClock(), busy, threading.Event(), 100).give_way()
    assert busy.looks == 4


@pytest.mark.parametrize("max_s", [YIELD_MAX_S, 5.0])
def test_a_turn_that_goes_on_starves_nothing(max_s: float) -> None:
    """After its longest wait a batch goes anyway; each kind of work has its own."""
    clock = PacedClock()

    assert Yielding(clock, lambda: True, threading.Event(), max_s).give_way()
    assert clock.passed == 1 + max_s


def test_other_work_goes_first_for_its_time_and_does_not_count_as_a_turn() -> None:
    """Whatever the longest wait for a turn is; nobody is asking, so that the steps need not be small."""
    clock = PacedClock()
    yielding = Yielding(clock, lambda: False, threading.Event(), 0.25, ahead=Ahead(work=lambda: True))

    assert yielding.give_way()
    assert clock.passed == 1 + YIELD_MAX_S
    assert not yielding.has_waited


def test_a_turn_that_begins_goes_first_whatever_the_longest_wait_is() -> None:
    """It says itself for how long."""
    begins = Busy(9)

    assert Yielding(PacedClock(), lambda: False, threading.Event(), 0.25, ahead=Ahead(begins)).give_way()
    assert begins.looks == 10


def test_where_one_turn_begins_after_the_other_all_work_goes_on_for_a_moment_together() -> None:
    """A slice every three seconds, in which nobody has to wait; then the next three."""
    clock = SetClock()
    first = TurnsFirst(clock, lambda: True)
    free: list[float] = []
    for step in range(430):
        clock.at = step / 100
        answers = {first(), first()}
        assert len(answers) == 1, "all lanes are told the same"
        free += [clock.at] * (False in answers)
    assert 18 <= len(free) <= 21
    assert all(at % (HELD_S + SLICE_S) + 0.001 >= HELD_S for at in free)


def test_a_pause_between_turns_begins_the_count_anew() -> None:
    """What ran freely a moment ago has not been held."""
    clock, starting = SetClock(), [True]
    first = TurnsFirst(clock, lambda: starting[0])
    assert first()
    clock.at, starting[0] = HELD_S, False
    assert not first()
    starting[0] = True
    assert first()


@pytest.mark.parametrize("busy", [lambda: True, lambda: False])
def test_a_process_that_wants_to_end_waits_for_nobody(busy: Callable[[], bool]) -> None:
    """And says so, before the batch."""
    stopping = threading.Event()
    stopping.set()
    yielding = Yielding(PacedClock(), busy, stopping, 100)

    assert not yielding.give_way()
    assert yielding.is_stopping


def test_it_remembers_for_a_while_that_it_had_to_wait() -> None:
    """Nothing before the first time, and nothing ten seconds later."""
    clock, busy = PacedClock(), Busy(1)
    yielding = Yielding(clock, busy, threading.Event())
    assert not yielding.has_waited

    yielding.give_way()
    assert yielding.has_waited

    clock.passed += LATELY_S
    assert not yielding.has_waited
