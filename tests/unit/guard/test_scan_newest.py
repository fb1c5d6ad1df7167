"""What a scan says about the newest batch: repeats, rescues, cycles, and clocks in its results."""

from typing import Any

import pytest

from app.guard.detectors import Limits, Trip
from app.guard.scan import scan
from tests.unit.guard.talk import Talk


def write(talk: Talk, times: int = 1, result: Any = "done") -> Talk:
    for _ in range(times):
        talk.call("write_file", {"path": "a.md"}, result)
    return talk


def bits(messages: Any, limits: Limits | None = None) -> list[bool]:
    verdict = scan(messages, limits or Limits())
    return [verdict.identical_result_repeat, verdict.repeat_not_evaluated, verdict.repeat_rescued]


def test_P33_results_under_one_id_are_not_evaluated() -> None:
    """Whose result is whose can't be told."""
    talk = Talk()
    for _ in range(2):
        talk.calls(("a", {}), ("b", {}), results=["x", "y"])
    assert bits(talk.messages) == [True, False, False]

    for message in talk.messages:
        for call in message.get("tool_calls", []):
            call["id"] = "one"
        if message["role"] == "tool":
            message["tool_call_id"] = "one"
    assert bits(talk.messages) == [False, True, False]


def test_P33_results_that_changed_places_are_not_identical() -> None:
    """Each belongs to its call."""
    talk = Talk().calls(("a", {}), ("b", {}), results=["x", "y"]).calls(("a", {}), ("b", {}), results=["y", "x"])

    assert bits(talk.messages) == [False, False, False]


@pytest.mark.parametrize("call_id", [None, 7, "", "other"])
def test_results_that_cant_be_joined_are_unknown(call_id: Any) -> None:
    """Missing, not a text, of another batch."""
    talk = write(Talk(), 2)
    talk.messages[-1]["tool_call_id"] = call_id

    assert bits(talk.messages) == [False, True, False]


def test_a_repeat_is_seen_across_the_whole_conversation_but_only_while_it_is_the_newest() -> None:
    """User messages and other batches in between don't matter; prose after it does."""
    talk = write(Talk()).call("ls").user("Again.").call("ls", {"path": "/"})
    assert bits(talk.messages) == [False, False, False]

    assert bits(write(talk).messages) == [True, False, False]
    assert bits(talk.say("Done.").messages) == [False, False, False]


def test_a_batch_is_rescued_where_only_moving_results_let_it_pass() -> None:
    """From the third on; not where it trips."""
    talk = Talk()
    found: list[list[bool]] = []
    for at in range(16):
        write(talk, result=f"line {at}")
        found.append(bits(talk.messages))

    assert [at for at, one in enumerate(found, 1) if one[2]] == list(range(3, 16))
    assert scan(talk.messages).trip == Trip("loop", scan(talk.messages).trip.signature, 16, 15, moved=True)  # type: ignore[union-attr]


def test_O66_a_cycle_is_observed_and_not_acted_on() -> None:
    """A, B three times with equal answers."""
    talk = Talk()
    for name in "abababa":
        talk.call(name)
    verdict = scan(talk.messages[:-2])

    assert verdict.trip is None
    assert verdict.observed
    assert (verdict.observed.detector, verdict.observed.repeat_count) == ("cycle", 3)
    assert scan(talk.messages[:-4]).observed is None
    assert scan([*talk.messages, {"role": "assistant", "content": "Done."}]).observed is None


def test_O67_with_masks_a_clock_in_the_answer_is_no_news() -> None:
    """The third trips; without masks it is only counted that masks would see it so."""
    talk = Talk()
    for at in range(3):
        write(talk, result=f"2026-01-31T12:00:0{at}Z nothing to do")

    masked = scan(talk.messages, Limits(mask_answers=True)).trip
    assert masked
    assert (masked.detector, masked.repeat_count) == ("loop", 3)
    assert scan(talk.messages).trip is None
    assert scan(talk.messages).masked_result_repeat
    assert not scan(write(talk, result="all done").messages).masked_result_repeat
