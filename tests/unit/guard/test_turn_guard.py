"""The guard of one turn: asked before tools run, told what they gave, one step after another."""

import json
from typing import Any

import pytest

from app.guard.detectors import Trip
from app.guard.turn_guard import QUIET, Call, CallResult, Decision, TurnGuard


def read(path: str = "/Library/a.md") -> Call:
    return Call("read", json.dumps({"path": path}), "read")


def search(query: str, **more: Any) -> Call:
    return Call("search", json.dumps({"query": query, **more}), "read")


def rounds(guard: TurnGuard, *batches: list[Call], chunks: list[list[int]] | None = None) -> list[Decision]:
    """Asks for each batch and, where it passes, hands in results that say what was asked for."""
    decisions: list[Decision] = []
    for at, batch in enumerate(batches):
        decisions.append(guard.check(batch))
        if decisions[-1].action == "pass":
            found = chunks[at] if chunks else None
            guard.record([CallResult(f"result of {call.arguments}", found) for call in batch])
    return decisions


def actions(decisions: list[Decision]) -> list[str]:
    return [decision.action for decision in decisions]


def test_A62_three_identical_batches_are_three_decisions_and_one_trip() -> None:
    """Two run; the third is not run and gets the note for each of its calls."""
    guard = TurnGuard("note")
    decisions = rounds(guard, *[[read(), read("/Library/b.md")]] * 3)

    assert actions(decisions) == ["pass", "pass", "note"]
    assert all(decision.scanned for decision in decisions)
    assert [decision.trip is not None for decision in decisions] == [False, False, True]
    assert decisions[2].positions == (0, 1)
    assert "Not run" in decisions[2].note
    assert guard.outcome == "note"


def test_A62_a_decision_carries_what_the_log_needs() -> None:
    """Detector, signature, count and threshold."""
    trip = rounds(TurnGuard("note"), *[[read()]] * 3)[-1].trip

    assert trip
    assert trip.signature
    assert trip.signature.startswith("read:")
    assert (trip.detector, trip.repeat_count, trip.threshold) == ("loop", 3, 2)


def test_the_next_trip_of_any_detector_forces_the_answer() -> None:
    """A model that goes on, and one that finds something else to repeat."""
    same = TurnGuard("note")
    assert actions(rounds(same, *[[read()]] * 4)) == ["pass", "pass", "note", "final"]
    assert same.outcome == "final"

    other = TurnGuard("note")
    assert actions(rounds(other, *[[read()]] * 3, [search("fuse")], [search("fuse")])) == [
        "pass",
        "pass",
        "note",
        "pass",
        "final",
    ]


def test_a_model_that_takes_the_note_goes_on() -> None:
    """Other batches pass, and the turn's line says that a note was given."""
    guard = TurnGuard("note")

    assert actions(rounds(guard, *[[read()]] * 3, [read("/b")], [read("/c")])) == [
        "pass",
        "pass",
        "note",
        "pass",
        "pass",
    ]
    assert guard.outcome == "note"


def test_in_mode_refuse_the_first_trip_forces_the_answer() -> None:
    """No note is given."""
    guard = TurnGuard("refuse")
    decisions = rounds(guard, *[[read()]] * 3)

    assert actions(decisions) == ["pass", "pass", "final"]
    assert decisions[2].note == ""


def test_off_never_acts_and_scans_nothing() -> None:
    """Whatever happens."""
    guard = TurnGuard("off")
    decisions = rounds(guard, *[[search("fuse")]] * 9)
    decisions += [guard.record_text("Again.", False) for _ in range(9)]
    decisions += [guard.feed("x" * 1000)]

    assert decisions == [QUIET] * 19
    assert guard.outcome == "none"
    assert not guard.active


def test_L13_moving_answers_do_not_rescue_a_turns_batch() -> None:
    """What the tools read doesn't change within a turn: the tier is off."""
    guard = TurnGuard("note")
    for at in range(2):
        guard.check([read()])
        guard.record([CallResult(f"line {at}")])

    assert guard.check([read()]).action == "note"


def test_a_tier_that_is_on_goes_by_the_declared_effect() -> None:
    """Reading has the allowance, writing its strikes."""
    reading, writing = TurnGuard("note", allowance=5), TurnGuard("note", allowance=5)
    write = Call("read_file", "{}", "write")

    assert actions(rounds(reading, *[[read()]] * 6)) == ["pass"] * 5 + ["note"]
    assert actions(rounds(writing, *[[write]] * 3)) == ["pass", "pass", "note"]


def test_a_batch_rescued_by_moving_answers_says_so() -> None:
    """With the tier on, the third of a batch that writes."""
    guard = TurnGuard("note", allowance=15)
    rescued: list[bool] = []
    for at in range(3):
        rescued.append(guard.check([Call("write", "{}", "write")]).rescued)
        guard.record([CallResult(at)])

    assert rescued == [False, False, True]


def test_thresholds_are_the_callers() -> None:
    """Strikes and stagnation; None turns a detector off."""
    assert actions(rounds(TurnGuard("note", strikes=1), *[[read()]] * 2)) == ["pass", "note"]
    assert actions(rounds(TurnGuard("note", strikes=None), *[[read()]] * 9)) == ["pass"] * 9
    assert TurnGuard("note", stagnation=None).record_text("Again.", False) == Decision(scanned=True)
    assert TurnGuard("note", stagnation=0).record_text("Again.", False).trip == Trip("stagnation", None, 1, 0)


def test_A63_a_normal_answer_is_one_quiet_decision() -> None:
    """A round with calls is counted by its batch, not by its narration."""
    guard = TurnGuard("note")

    assert guard.record_text("I look it up.", True) == QUIET
    assert guard.record_text("The left one.", False) == Decision(scanned=True)
    assert guard.check([]) == QUIET


def test_the_same_prose_over_and_over_climbs_the_ladder() -> None:
    """Six of the same, then a seventh."""
    guard = TurnGuard("note")
    decisions = [guard.record_text("Let me check.", False) for _ in range(7)]

    assert actions(decisions) == ["pass"] * 5 + ["note", "final"]
    assert decisions[5].trip == Trip("stagnation", None, 6, 5)


def test_O71_the_same_search_again_gets_a_note_and_a_third_forces_the_answer() -> None:
    """The rows say `requery`, though the third is also the third of the same batch."""
    decisions = rounds(TurnGuard("note"), *[[search("which fuse")]] * 3)

    assert actions(decisions) == ["pass", "note", "final"]
    assert [(d.trip.detector, d.trip.repeat_count, d.trip.threshold) for d in decisions if d.trip] == [
        ("requery", 2, 1),
        ("requery", 3, 1),
    ]
    assert "already above" in decisions[1].note


def test_O71_searches_that_bring_the_same_passages_are_the_same_search() -> None:
    """Known once it has run: the note takes its result's place, the next one forces the answer."""
    guard = TurnGuard("note")
    found: list[Decision] = []
    for query, ids in [("fuse", [1, 2]), ("breaker", [2, 1]), ("circuit protection", [1, 2])]:
        assert guard.check([search(query), read(f"/{query}")]).action == "pass"
        found.append(guard.record([CallResult("hits", ids), CallResult("text")]))

    assert actions(found) == ["pass", "note", "final"]
    assert found[1].positions == (0,)
    assert not found[1].scanned
    assert found[2].trip
    assert (found[2].trip.detector, found[2].trip.repeat_count) == ("requery", 3)


def test_O66_a_cycle_is_observed_once_and_never_acted_on() -> None:
    """A, B three times with equal answers; it stays unsaid while it goes on."""
    guard = TurnGuard("note")
    seen: list[Trip | None] = []
    for path in "ababababxababab":
        assert guard.check([read(path)]).action == "pass"
        seen.append(guard.record([CallResult(f"text of {path}")]).observed)

    assert [at for at, trip in enumerate(seen, 1) if trip] == [6, 15]
    assert seen[5]
    assert (seen[5].detector, seen[5].repeat_count) == ("cycle", 3)
    assert guard.outcome == "none"


def test_results_without_a_running_batch_change_nothing() -> None:
    """A batch that got the note has no results of its own."""
    guard = TurnGuard("note")
    rounds(guard, *[[read()]] * 3)

    assert guard.record([CallResult("x")]) == QUIET


@pytest.mark.parametrize("mode", ["note", "refuse"])
def test_a_generation_that_runs_away_is_aborted(mode: Any) -> None:
    """In every mode but off; the decision says what was seen."""
    guard = TurnGuard(mode)
    block = "The pump is in the cellar behind the boiler, next to the valve that nobody may close. "
    decisions = [guard.feed(piece) for piece in [block] * 5]

    assert decisions[0] == QUIET
    assert decisions[-1] == Decision("abort", trip=Trip("stagnation", None, 4, 3))
    assert guard.outcome == "abort"


def test_each_reply_is_watched_for_itself() -> None:
    """A text that several rounds begin with is no runaway."""
    guard = TurnGuard("note")
    block = "I look for the next part of the answer in the documents of this house, one after another. "
    for _ in range(9):
        guard.begin_reply()
        assert guard.feed(block) == QUIET
