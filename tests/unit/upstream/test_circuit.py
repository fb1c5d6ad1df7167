"""A server that failed five times in a row is left alone, and tried by one request at a time."""

from app.upstream.circuit import FAILURES, PAUSE_S, Circuit


def opened(now: float = 100.0) -> Circuit:
    circuit = Circuit()
    began = [circuit.failed(circuit.enter(now), now) for _ in range(FAILURES)]
    assert began == [False] * (FAILURES - 1) + [True]
    return circuit


def test_the_fifth_failure_in_a_row_begins_a_pause() -> None:
    """Until it is over nobody may ask, and everybody learns for how long."""
    circuit = opened()
    assert circuit.is_open
    assert circuit.wait(100) == PAUSE_S
    assert circuit.wait(100 + PAUSE_S - 1) == 1
    assert circuit.wait(100 + PAUSE_S) is None


def test_an_answer_in_between_starts_the_count_anew() -> None:
    """Only failures in a row count."""
    circuit = Circuit()
    for _ in range(3 * FAILURES):
        for _ in range(FAILURES - 1):
            assert not circuit.failed(circuit.enter(0), 0)
        assert not circuit.answered(circuit.enter(0))
    assert circuit.wait(0) is None


def test_after_the_pause_one_probe_goes_and_a_success_ends_it() -> None:
    """While it is on its way the others wait without a number; then everybody may ask again."""
    circuit = opened()
    probe = circuit.enter(130)
    assert probe.is_probe
    assert circuit.wait(131) == PAUSE_S - 1
    assert circuit.wait(130 + PAUSE_S) == 0
    assert circuit.answered(probe)
    assert (circuit.is_open, circuit.wait(131)) == (False, None)
    assert not circuit.enter(131).is_probe


def test_a_probe_that_fails_begins_the_next_pause_without_a_word() -> None:
    """The pause counts from the failure; it is no new beginning."""
    circuit = opened()
    probe = circuit.enter(130)
    assert not circuit.failed(probe, 140)
    assert circuit.wait(140) == PAUSE_S
    assert circuit.wait(140 + PAUSE_S) is None


def test_a_probe_that_is_stopped_lets_another_go_after_half_a_minute() -> None:
    """Neither stuck for ever, nor more than one probe per pause."""
    circuit = opened()
    probe = circuit.enter(130)
    circuit.left(probe)
    assert circuit.wait(131) == PAUSE_S - 1
    assert circuit.wait(130 + PAUSE_S) is None


def test_requests_that_were_under_way_change_nothing_but_by_an_answer() -> None:
    """A late failure does not lengthen the pause nor let a second probe go; a late answer ends the pause."""
    circuit = Circuit()
    late = [circuit.enter(100) for _ in range(3)]
    for _ in range(FAILURES):
        circuit.failed(circuit.enter(100), 100)
    assert not circuit.failed(late[0], 120)
    assert circuit.wait(120) == PAUSE_S - 20
    probe = circuit.enter(130)
    circuit.left(late[1])
    assert circuit.wait(130 + PAUSE_S) == 0
    assert circuit.answered(late[2])
    assert not circuit.answered(probe)


def test_leaving_after_the_end_was_told_frees_no_second_probe() -> None:
    """The end of a request is told once; the probe of another stays the only one."""
    circuit = opened()
    first = circuit.enter(130)
    circuit.failed(first, 130)
    second = circuit.enter(160)
    circuit.left(first)
    assert second.is_probe
    assert circuit.wait(160 + PAUSE_S) == 0
