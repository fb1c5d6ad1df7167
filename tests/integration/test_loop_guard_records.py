"""What the writer of the loop guard's log keeps of a decision, and what becomes known of it later."""

from pathlib import Path

import pytest
from sqlalchemy import select

from app.guard.log_records import TripOutcome, TripRecord
from app.store.engine import Database
from app.store.loop_guard_log import Environment, short_hash
from app.store.models.loop_guard import LoopGuardTrip
from tests.integration.guard_log_kit import DAY, NOW, FixedClock, Refusing, decide, guard_log, read


def the_trip(database: Database) -> LoopGuardTrip:
    return database.read(lambda session: session.scalars(select(LoopGuardTrip)).one())


def test_what_became_of_a_decision_finds_its_row_whenever_it_comes(database: Database) -> None:
    """Before the flush, after it, while a refused batch waits, and for a decision that was lost: then nothing."""
    store = Refusing(database)
    writer = guard_log(store, database, capacity=1)
    queued, lost = decide(writer, trips=2)
    writer.settled(queued, TripOutcome(outcome="delivered"))
    writer.settled(lost, TripOutcome(outcome="not_sent:context"))
    store.refusals = 1
    writer.flush()
    writer.settled(queued, TripOutcome(next_turn="same"))
    writer.flush()
    writer.settled(queued, TripOutcome(prompt_tokens=10**30, completion_tokens=-1, seconds=2.5))
    writer.settled(queued, TripOutcome(seconds=float("nan"), next_turn="changed"))
    writer.stop()
    row = the_trip(database)
    assert (row.outcome, row.next_turn, row.prompt_tokens) == ("delivered", "changed", 2**53)
    assert (row.completion_tokens, row.seconds) == (0, 2.5)


def test_what_became_of_a_decision_is_written_with_it_at_the_stop(database: Database) -> None:
    """A refused batch and the outcome that came after it, in one last transaction."""
    store = Refusing(database)
    writer = guard_log(store, database)
    (decided,) = decide(writer, trips=1)
    store.refusals = 1
    writer.flush()
    writer.settled(decided, TripOutcome(outcome="delivered"))
    writer.stop()
    assert the_trip(database).outcome == "delivered"


@pytest.mark.parametrize(
    ("detector", "kept"),
    [
        ("loop", (True, None, None)),
        ("stagnation", (False, 6, 5)),
        ("requery", (True, 6, 5)),
        ("cycle", (True, 6, 5)),
    ],
)
def test_each_detector_keeps_its_own_columns(
    database: Database, detector: str, kept: tuple[bool, int | None, int | None]
) -> None:
    """A stagnation has no key: it would be one of what was said."""
    writer = guard_log(database, database)
    decide(writer, trips=1, detector=detector, repeat_count=6, threshold=5)
    writer.stop()
    row = the_trip(database)
    assert (row.signature_hash is not None, row.repeat_count, row.threshold) == kept
    assert row.session_hash == short_hash(b"k" * 32, "s1")


def test_d50_no_text_reaches_the_disk(database: Database) -> None:
    """Signature and session are keys before they leave the process: searched in every file of the data folder."""
    writer = guard_log(database, database)
    decide(writer, trips=2, signature="sentinel-tool:00", session="sentinel-session")
    writer.stop()
    database.close()
    files = [path for path in database.path.parent.rglob("*") if path.is_file()]
    assert Path(database.path) in files
    assert not any(b"sentinel" in path.read_bytes() for path in files)


def test_o70_a_scan_names_the_environment_it_was_made_in(database: Database) -> None:
    """The build changes between two requests of a day: two rows, both environments in the reading."""
    writer = guard_log(database, database)
    builds = [Environment(backend="llama.cpp", backend_build=build) for build in ("b1", "b2")]
    for build in builds:
        writer.scanned("agent", "qwen3:14b", "note", build)
    writer.stop()
    reading = read(database)
    assert [row.scanned for row in reading.days] == [1, 1]
    assert {facts.backend_build for _, facts in reading.env} == {"b1", "b2"}


def test_a_trip_stands_on_the_day_of_its_scan(database: Database) -> None:
    """Midnight may pass between the two."""
    clock = FixedClock(NOW)
    writer = guard_log(database, database, clock)
    scan = writer.scanned("proxy", "m", "refuse")
    clock.secs += DAY
    writer.tripped(TripRecord(scan, "loop", "refuse"))
    writer.stop()
    (row,) = read(database, 2, NOW + DAY).days
    assert (row.day, row.mode, row.scanned, row.trips) == ("2026-09-18", "refuse", 1, 1)
