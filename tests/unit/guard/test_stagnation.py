"""The same prose again: a limit, a window, and what counts as the same."""

from itertools import cycle, islice

import pytest

from app.guard.detectors import CycleObserver, StagnationDetector, Trip, normalised


def run(said: list[str], limit: int = 5, made_calls: bool = False) -> list[Trip | None]:
    detector = StagnationDetector(limit)
    return [detector.record(text, made_calls) for text in said]


def test_G19_the_sixth_of_the_same_prose_trips() -> None:
    """Five are fine; the trip carries count and limit."""
    trips = run(["Let me check."] * 6)

    assert trips == [None] * 5 + [Trip("stagnation", None, 6, 5)]


def test_G20_the_same_prose_far_apart_passes() -> None:
    """Five others behind each: the window holds twenty."""
    said = [text for at in range(6) for text in ["Still here.", *[f"other {at} {one}" for one in range(5)]]]

    assert run(said) == [None] * 36


def test_G21_two_that_alternate_trip_within_twelve() -> None:
    """Other prose in between does not clear the count."""
    trips = run(list(islice(cycle(["One.", "Two."]), 12)))

    assert [at for at, trip in enumerate(trips, 1) if trip] == [11, 12]


@pytest.mark.parametrize(("text", "made_calls"), [("", False), ("  \n", False), ("Let me check.", True)])
def test_G22_empty_text_and_text_with_calls_are_ignored(text: str, made_calls: bool) -> None:
    """Twenty times."""
    assert run([text] * 20, made_calls=made_calls) == [None] * 20


@pytest.mark.parametrize(("limit", "first"), [(2, 3), (0, 1), (100, 101)])
def test_G23_the_limit_is_a_setting(limit: int, first: int) -> None:
    """One more than the limit trips, from nought to a hundred."""
    trips = run(["Again."] * 101, limit)

    assert next(at for at, trip in enumerate(trips, 1) if trip) == first
    assert trips[first - 1] == Trip("stagnation", None, first, limit)


def test_width_case_and_white_space_make_no_difference() -> None:
    """Digits do: they are progress."""
    assert normalised("Ｌet  me\n CHECK. ") == normalised("let me check.")
    assert run(["let me check.", "LET ME CHECK.", "Let  me check."], 2)[-1] == Trip("stagnation", None, 3, 2)
    assert run([f"Step {at}." for at in range(20)], 2) == [None] * 20


def test_prose_beyond_the_limit_of_normalising_is_compared_as_it_is() -> None:
    """Megabytes cost no more than their hash."""
    long = "Word " * 20_000

    assert normalised(long) is long
    assert run([long] * 3, 2)[-1] == Trip("stagnation", None, 3, 2)


def test_clearing_forgets_what_was_said() -> None:
    """A user message does that."""
    detector = StagnationDetector(2)
    for _ in range(2):
        detector.record("Again.", False)
    detector.clear()

    assert detector.record("Again.", False) is None


def observe(batches: str, answers: list[int | None] | None = None) -> list[Trip | None]:
    observer = CycleObserver()
    return [observer.record(name, key) for name, key in zip(batches, answers or [1] * len(batches), strict=True)]


def test_O66_batches_that_take_turns_three_times_are_seen() -> None:
    """With equal answers, periods of two to four."""
    assert observe("ababab")[-1] == Trip("cycle", "a > b", 3, 3)
    assert observe("xabcabcabc")[-1] == Trip("cycle", "a > b > c", 3, 3)
    assert observe("aabbaabbaabb")[-1] == Trip("cycle", "a > a > b > b", 3, 3)
    assert observe("abababab")[-1] == Trip("cycle", "a > b", 4, 3)


@pytest.mark.parametrize("batches", ["ababa", "aaaaaaaaaaaa", "abcabcab", "abcdeabcdeabcde", "abab" + "c" + "abab"])
def test_O66_less_than_that_is_no_cycle(batches: str) -> None:
    """Two and a half turns, one batch alone, a longer period, a break."""
    assert not any(observe(batches))


def test_O66_answers_that_move_or_are_unknown_make_no_cycle() -> None:
    """Progress is no cycle, and what can't be compared is none either."""
    assert not any(observe("ababab", [1, 1, 1, 1, 1, 2]))
    assert not any(observe("ababab", [None] * 6))


def test_O66_a_cycle_has_one_name_wherever_it_is_entered() -> None:
    """So that a log counts it once."""
    assert observe("ababab")[-1] == observe("bababa")[-1]
