"""The writer of the loop guard's log: what is decided is either in the log or counted as lost, and nobody waits."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import select

from app.guard.log_records import TripOutcome
from app.guard.log_writer import GuardLog
from app.store.engine import Database
from app.store.models.loop_guard import LoopGuardTrip
from tests.integration.guard_log_kit import (
    DAY,
    NOW,
    FixedClock,
    Refusing,
    decide,
    figures,
    guard_log,
    put,
    read,
    scan_key,
    trip,
)
from tests.waiting import until


def test_w51_a_full_queue_loses_the_newest_and_counts_it(database: Database) -> None:
    """A queue for two, three trips: one is lost, its scan is not."""
    writer = guard_log(database, database, capacity=2)
    decide(writer, scans=3, trips=3)
    assert writer.depth == 2
    writer.stop()
    assert figures(database) == (3, 2, 0, 1)
    assert [loss.reason for loss in read(database).losses] == ["queue_full"]


def test_w52_everything_is_there_after_a_stop_and_a_second_stop_writes_nothing(database: Database) -> None:
    """Three scans and two trips, through the thread, on a database opened anew."""
    store = Refusing(database)
    writer = guard_log(store, database)
    writer.start()
    decide(writer, scans=3, trips=2)
    writer.stop()
    asked = store.asked
    writer.stop()
    assert store.asked == asked
    again = Database(database.url)
    assert figures(again) == (3, 2, 0, 0)
    assert (read(again).runs.clean, read(again).runs.count) == (1, 1)
    again.close()


def test_w53_rows_appear_without_a_stop(database: Database) -> None:
    """After a period, here of 50 ms; nothing is written while nothing happens."""
    store = Refusing(database)
    writer = guard_log(store, database, period_s=0.05)
    writer.start()
    until(lambda: read(database).runs.open == 1, "the run's row")
    asked = store.asked
    resting = threading.Event()
    resting.wait(0.2)
    assert store.asked == asked
    decide(writer, trips=1)
    until(lambda: figures(database) == (1, 1, 0, 0), "the rows")
    writer.stop()


def test_a_full_batch_is_written_before_its_period(database: Database) -> None:
    """The period here is ten minutes."""
    writer = guard_log(database, database, batch=4)
    writer.start()
    until(lambda: read(database).runs.open == 1, "the run's row")
    decide(writer, trips=4)
    until(lambda: figures(database) == (1, 4, 0, 0), "the batch")
    writer.stop()


def test_w54_a_flush_the_database_refuses_for_good_is_lost_and_the_next_one_works(database: Database) -> None:
    """Three things lost; the loss itself is in the log with the next flush."""
    store = Refusing(database)
    writer = guard_log(store, database, tries=1)
    store.refusals = 1
    decide(writer, scans=2, trips=1)
    assert not writer.flush()
    assert figures(database) == (0, 0, 0, 0)
    decide(writer, scans=1, trips=1)
    assert writer.flush()
    assert figures(database) == (1, 1, 2, 1)
    assert {loss.reason for loss in read(database).losses} == {"flush_failed"}
    writer.stop()
    assert figures(database) == (1, 1, 2, 1)


@pytest.mark.parametrize("error", [None, OverflowError("int too large"), RuntimeError("shut down")])
def test_a_refused_batch_is_tried_again_a_few_times(database: Database, error: Exception | None) -> None:
    """Twice refused is nothing lost; what came meanwhile waits its turn."""
    store = Refusing(database)
    store.error = error or store.error
    writer = guard_log(store, database)
    decide(writer, scans=2, trips=1)
    store.refusals = 2
    assert not writer.flush()
    decide(writer, scans=1, trips=1)
    assert not writer.flush()
    writer.stop()
    assert figures(database) == (3, 2, 0, 0)


def test_three_refusals_lose_the_batch_but_not_what_came_after(database: Database) -> None:
    """The bound of what is kept: one batch beside the queue."""
    store = Refusing(database)
    writer = guard_log(store, database, capacity=4)
    decide(writer, scans=1, trips=4)
    store.refusals = 3
    writer.flush()
    decide(writer, scans=1, trips=6)
    assert [writer.flush() for _ in range(3)] == [False, False, True]
    writer.stop()
    assert figures(database) == (1, 4, 1, 6)
    assert {loss.reason: loss.trips for loss in read(database).losses} == {"flush_failed": 4, "queue_full": 2}


def test_the_thread_outlives_a_refusing_database_and_rests_between_tries(database: Database) -> None:
    """A full queue does not use up the tries."""
    store = Refusing(database)
    writer = guard_log(store, database, period_s=0.05, batch=2)
    store.refusals = 2
    writer.start()
    for _ in range(20):
        decide(writer, trips=1)
    until(lambda: figures(database) == (20, 20, 0, 0), "everything")
    writer.stop()


def test_the_last_flush_is_tried_once_and_says_what_was_lost(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A run whose end could not be written counts as unclean at the next start."""
    store = Refusing(database)
    writer = guard_log(store, database)
    writer.flush()
    decide(writer, scans=2, trips=1)
    store.refusals = 9
    writer.stop()
    assert store.refusals == 8
    assert "guard_log_refused error=OperationalError tries=1" in caplog.messages
    assert "guard_log_lost trips=1 scans=2 reasons=flush_failed" in caplog.messages
    following = guard_log(database, database)
    following.stop()
    assert [loss.reason for loss in read(database).losses] == ["unclean_exit"]


def test_w55_what_comes_after_the_stop_is_lost(database: Database) -> None:
    """A trip and a scan; the log is closed, the process still knows."""
    writer = guard_log(database, database)
    writer.stop()
    decide(writer, scans=1, trips=1)
    assert {reason: (lost.trips, lost.scans) for reason, lost in writer.lost.items()} == {"stopped": (1, 1)}
    assert figures(database) == (0, 0, 0, 0)


@pytest.mark.parametrize("limits", [{"batch": 0}, {"capacity": 0}, {"batch": 0, "capacity": -3}])
def test_w56_a_start_prunes_and_limits_below_one_work_as_one(database: Database, limits: dict[str, float]) -> None:
    """A row of a hundred days ago is gone before anything else happens."""
    old = NOW - 100 * DAY
    put(database, trip(recorded_at=old), scans={scan_key(old): 1})
    writer = guard_log(database, database, **limits)
    writer.start()
    until(lambda: database.read(lambda s: s.scalars(select(LoopGuardTrip)).all()) == [], "the old row gone")
    decide(writer, trips=1)
    writer.stop()
    assert figures(database) == (1, 1, 0, 0)


def test_w57_nothing_is_both_written_and_lost_or_neither(database: Database) -> None:
    """Twenty rounds of three threads that decide while the writer stops: recorded = written + lost."""
    decided = lost = lost_in_log = 0
    for _ in range(20):
        writer = guard_log(database, database, capacity=8, batch=2, period_s=0.01)
        writer.start()
        with deciding(writer, many=3) as counts:
            until(lambda counts=counts: min(counts) > 3, "all three decide")
            writer.stop()
            lost_in_log = figures(database)[2] + figures(database)[3]
        decided += sum(counts)
        lost += sum(one.trips + one.scans for one in writer.lost.values())
    scanned, trips, *_ = figures(database)
    assert scanned + trips + lost == 2 * decided
    assert 0 <= lost_in_log <= lost


@contextmanager
def deciding(writer: GuardLog, many: int) -> Iterator[list[int]]:
    """Threads that scan and decide while the block runs; how often each did."""
    counts, ended = [0] * many, threading.Event()

    def work(place: int) -> None:
        while not ended.is_set():
            decide(writer, trips=1)
            counts[place] += 1
            ended.wait(0.001)

    running = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(many)]
    for thread in running:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in running:
            thread.join()


def test_many_names_of_models_do_not_grow_the_memory(database: Database) -> None:
    """A client may send a new name with each request: so many keys wait, the rest is counted as lost."""
    writer = guard_log(database, database, capacity=3)
    for number in range(5):
        writer.scanned("proxy", f"model-{number}", "note")
    writer.scanned("proxy", "model-0", "note")
    writer.stop()
    assert figures(database) == (4, 0, 2, 0)


def test_the_event_loop_may_decide(database: Database) -> None:
    """No call of it blocks, which the guard against blocking calls would raise for."""
    writer = guard_log(database, database)
    writer.start()

    async def turn() -> None:
        (decided,) = decide(writer, trips=1)
        writer.settled(decided, TripOutcome(outcome="delivered"))

    asyncio.run(turn())
    writer.stop()
    assert figures(database) == (1, 1, 0, 0)


def test_losses_are_said_once_a_minute_and_again_at_the_end(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Not once per loss."""
    caplog.set_level(logging.WARNING)
    clock = FixedClock()
    writer = guard_log(database, database, clock)
    writer.stop()
    for passed in (0, 1, 59, 61, 62):
        clock.passed = passed
        decide(writer, scans=1)
    lines = [line for line in caplog.messages if line.startswith("guard_log_lost")]
    assert lines == [f"guard_log_lost trips=0 scans={count} reasons=stopped" for count in (1, 4)]
