"""When a watched folder is looked at next."""

from app.ingest.look_due import ALLOWANCE_S, MOST_PARTS, REST_MOST_S, REST_SHARE, LookDue


def test_an_edit_does_not_wait_for_what_a_look_at_the_whole_cost() -> None:
    """Someone had 20,000 files compared, which took half a minute, and edits one."""
    due = LookDue()
    due.spend(100.0, 30.0, is_part=False)
    due.ask(101.0, {"notes/"})
    assert due.soonest() == 101.0
    assert due.take(101.0) == ["notes/"]


def test_an_edit_overtakes_a_look_at_the_whole_that_rests() -> None:
    """And the whole is still looked at afterwards."""
    due = LookDue()
    due.spend(100.0, ALLOWANCE_S + 1, is_part=False)
    due.ask(100.0)
    due.ask(101.0, {"notes/"})
    assert due.take(101.0) == ["notes/"]
    assert due.take(101.0) is None
    assert due.soonest() == 100.0 + REST_SHARE
    assert due.take(100.0 + REST_SHARE) == []
    assert due.soonest() is None


def test_a_few_short_looks_need_no_rest() -> None:
    """Three files deleted one after the other in a large folder: each is a look at the whole."""
    due = LookDue()
    for second in range(3):
        due.ask(float(second))
        assert due.take(float(second)) == []
        due.spend(second + 0.5, 0.5, is_part=False)
    due.ask(3.0)
    assert due.soonest() == 3.0


def test_a_folder_that_always_changes_takes_a_fifth_of_the_time() -> None:
    """Ten minutes of changes without an end, each look a second long."""
    due, now, spent = LookDue(), 0.0, 0.0
    while now < 600:
        due.ask(now)
        now = due.soonest() or now
        assert due.take(now) == []
        now, spent = now + 1.0, spent + 1.0
        due.spend(now, 1.0, is_part=False)
    assert 0.18 * now < spent < 0.21 * now + ALLOWANCE_S


def test_no_rest_is_longer_than_the_longest() -> None:
    """After a first look of an hour, and after another one straight behind it."""
    due = LookDue()
    for now in (10.0, 20.0):
        due.spend(now, 3600.0, is_part=False)
        due.ask(now)
        assert due.soonest() == now + REST_MOST_S
        due.cancel()


def test_many_directories_are_looked_at_as_the_whole() -> None:
    """One at a time up to so many, and a look at the whole settles what was asked for one by one."""
    due = LookDue()
    for number in range(MOST_PARTS):
        due.ask(1.0, {f"part{number}/"})
    assert len(due.take(1.0) or []) == MOST_PARTS
    due.ask(2.0, {f"part{number}/" for number in range(MOST_PARTS)})
    due.ask(2.0, {"one more/"})
    assert due.take(2.0) == []
    assert due.take(99.0) is None


def test_what_is_asked_for_earlier_stays_so() -> None:
    """A change in the same directory does not put off the look that is due."""
    due = LookDue()
    due.ask(1.0, {""})
    due.ask(5.0, {""})
    assert due.take(0.9) is None
    assert due.take(1.0) == [""]
