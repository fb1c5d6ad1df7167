"""The loop guard's log on a real database: what is added, what is pruned, what a window shows."""

from datetime import UTC, datetime

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, func, select, text

from app.settings import Settings
from app.store import loop_guard_log as log
from app.store.engine import Database
from app.store.loop_guard_log import Environment, Loss
from app.store.loop_guard_reading import Filters
from app.store.migrate import HEAD, MIGRATIONS, current_revision, migrate
from app.store.models.loop_guard import LoopGuardEnv, LoopGuardRun, LoopGuardScan, LoopGuardTrip
from tests.integration.guard_log_kit import DAY, EVENT, NOW, RUN, SOME, prune, put, read, scan_key, trip


def count(database: Database, table: type) -> int:
    return database.read(lambda session: session.scalar(select(func.count()).select_from(table)) or 0)


def moment(secs: int) -> datetime:
    return datetime.fromtimestamp(secs, tz=UTC)


def test_a_database_of_the_first_schema_gets_the_log_and_keeps_its_rows(settings: Settings) -> None:
    """An upgrade in place, with something in it."""
    database = Database(settings.database)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    def first_schema(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")

    database.writer_connection(first_schema)
    database.write(lambda session: session.execute(text("UPDATE users SET display_name = 'Kept' WHERE id = 1")))
    migrate(database)
    assert current_revision(database) == HEAD
    assert database.read(lambda session: session.scalar(text("SELECT display_name FROM users"))) == "Kept"
    assert read(database).days == ()
    database.close()


def test_d44_both_tables_keep_a_long_name_under_one_key(database: Database) -> None:
    """A request and its trip stand in one row of the reading."""
    name = "é" * 300
    put(database, trip(model_name=log.bounded_model_name(name)), scans={scan_key(model=name): 2})
    (row,) = read(database).days
    assert (row.model_name, row.scanned, row.trips) == ("é" * 256, 2, 1)


def test_d45_a_day_shows_what_only_one_table_knows(database: Database) -> None:
    """Scans without a trip are a zero with its denominator; a trip whose scan was lost has no denominator."""
    put(database, trip(model_name="b"), scans={scan_key(model="a"): 5})
    assert [(row.model_name, row.scanned, row.trips) for row in read(database).days] == [("a", 5, 0), ("b", 0, 1)]
    assert [(total.scanned, total.trips, total.upper_bound) for total in read(database).totals] == [(5, 1, None)]


def test_d46_sessions_are_counted_once_and_scans_add_up(database: Database) -> None:
    """Two flushes of four requests make eight; three trips may come from two sessions."""
    put(database, trip(), trip(), scans={scan_key(): 4})
    put(
        database,
        trip(session_hash="e8bc163c82eee187"),
        trip(action="observed", detector="cycle"),
        scans={scan_key(): 4},
    )
    (row,) = read(database).days
    assert (row.scanned, row.trips, row.loops, row.sessions) == (8, 3, 3, 2)
    (total,) = read(database).totals
    assert (total.trips, total.observed, total.sessions, total.rate) == (3, 1, 2, 3 / 8)


def test_d47_models_and_modes_have_rows_of_their_own_in_order(database: Database) -> None:
    """Newest day first, then by model, version and mode."""
    keys = [scan_key(NOW - DAY, "a"), scan_key(model="b", mode="refuse"), scan_key(model="b"), scan_key(model="a")]
    put(database, trip(detector="stagnation", signature_hash=None), scans=dict.fromkeys(keys, 1))
    rows = [(row.day, row.model_name, row.mode) for row in read(database).days]
    assert rows == [
        ("2026-09-18", "a", "note"),
        ("2026-09-18", "b", "note"),
        ("2026-09-18", "b", "refuse"),
        ("2026-09-18", "qwen3:14b", "note"),
        ("2026-09-17", "a", "note"),
    ]
    assert [(total.mode, total.scanned) for total in read(database).totals] == [("note", 3), ("refuse", 1)]


def test_a_window_and_its_filters_leave_out_the_rest(database: Database) -> None:
    """By days, path, model, mode and environment."""
    put(database, trip(), trip(path="agent", detector="requery"), scans={scan_key(NOW - 7 * DAY): 1, scan_key(): 1})
    assert read(database, 7).first_day == "2026-09-12"
    assert sum(row.scanned for row in read(database, 7).days) == 1
    assert sum(row.scanned for row in read(database, 8).days) == 2
    assert [row.requeries for row in read(database, filters=Filters(path="agent")).days] == [1]
    assert read(database, filters=Filters(model_name="other")).days == ()
    assert read(database, filters=Filters(mode="refuse")).days == ()
    assert read(database, filters=Filters(env_id="other")).totals == ()
    assert read(database, filters=Filters(env_id="%")).totals == ()
    assert len(read(database, filters=Filters(env_id=SOME.env_id[:6])).totals) == 2


def test_d48_days_past_retention_go_from_both_tables(database: Database) -> None:
    """Whole days; 90 are kept. What nothing refers to any more goes too: losses, runs, environments."""
    for age in (89, 90, 91):
        secs = NOW - age * DAY
        put(database, trip(recorded_at=secs), scans={scan_key(secs): 1}, losses=(Loss(secs // DAY, "stopped", 1, 0),))
    old, other = moment(NOW - 95 * DAY), Environment(backend="gone")
    database.write(lambda session: log.open_run(session, "old", old, alone=False))
    database.write(lambda session: log.add_environments(session, [other]))
    prune(database)
    reading = read(database, 90)
    assert [row.day for row in reading.days] == [reading.first_day]
    assert (count(database, LoopGuardTrip), count(database, LoopGuardScan)) == (1, 1)
    assert [loss.day for loss in reading.losses] == [reading.first_day]
    assert (count(database, LoopGuardRun), count(database, LoopGuardEnv)) == (0, 1)


def test_d49_above_the_row_limit_whole_days_go_but_never_today(database: Database) -> None:
    """Numerator and denominator leave together, and what left is a loss on its day."""
    for limit in (3, 1):
        for age in (2, 1, 0):
            secs = NOW - age * DAY
            put(database, trip(recorded_at=secs), trip(recorded_at=secs), scans={scan_key(secs): 10})
        prune(database, limit=limit)
        assert [(row.day, row.trips % 2) for row in read(database).days] == [("2026-09-18", 0)]
    assert count(database, LoopGuardScan) == 1
    losses = [(loss.day, loss.reason, loss.trips, loss.scans) for loss in read(database).losses]
    assert losses == [("2026-09-17", "row_limit", 4, 20), ("2026-09-16", "row_limit", 4, 20)]


def test_d49_the_limit_is_fifty_thousand_rows(database: Database) -> None:
    """One more than that in two days, and yesterday is gone."""
    assert log.TRIP_ROW_LIMIT == 50_000
    put(database, trip(recorded_at=NOW - DAY), trip(recorded_at=NOW - DAY), trip())
    names = ", ".join(column for column in LoopGuardTrip.__table__.columns.keys() if column != "id")  # noqa: SIM118
    counting = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 49998)"
    rows = f"INSERT INTO loop_guard_trips ({names}) {counting} SELECT {names} FROM n, loop_guard_trips WHERE id = 3"
    database.write(lambda session: session.execute(text(rows)))
    prune(database)
    assert count(database, LoopGuardTrip) == 50_000
    put(database, trip())
    prune(database)
    assert count(database, LoopGuardTrip) == 49_999
    assert read(database).lost_trips == 2


def test_what_became_of_a_decision_is_filled_in_later(database: Database) -> None:
    """Outcome, next turn and cost; a decision that is gone is passed over."""
    (trip_id,) = put(database, trip())
    facts = {"outcome": "delivered", "next_turn": "changed", "prompt_tokens": 900, "seconds": 1.5}
    database.write(lambda session: log.update_trip(session, trip_id, facts))
    database.write(lambda session: log.update_trip(session, trip_id + 7, {"outcome": "delivered"}))
    assert read(database).outcomes == (("delivered", 1), ("next:changed", 1))


def test_the_keys_that_tripped_most_come_first(database: Database) -> None:
    """The same loop, three times, is told from a single one; what was only observed does not count."""
    other = trip(signature_hash="a" * 16, recorded_at=NOW - DAY)
    put(database, *[trip(session_hash=f"{n:016}") for n in (1, 1, 2)], other, trip(action="observed", detector="cycle"))
    rows = [(row.signature_hash, row.trips, row.sessions, row.last_day) for row in read(database).signatures]
    assert rows == [(EVENT.signature_hash, 3, 2, "2026-09-18"), ("a" * 16, 1, 1, "2026-09-17")]
    assert read(database).sessions == 3


def test_o70_another_build_of_the_server_has_a_row_of_its_own(database: Database) -> None:
    """An upgrade in the middle of a day splits the day."""
    newer = Environment(backend="llama.cpp", backend_build="b9999")
    database.write(lambda session: log.add_environments(session, [newer, newer]))
    put(database, trip(), trip(env_id=newer.env_id))
    assert sorted(row.env_id for row in read(database).days) == sorted([SOME.env_id, newer.env_id])
    assert dict(read(database).env) == {SOME.env_id: SOME, newer.env_id: newer}


def test_o69_a_run_that_never_ended_is_marked_by_the_next_one_alone(database: Database) -> None:
    """Unknown losses on the day it was last alive; a run that another process may hold is left open."""
    begun = moment(NOW - DAY)
    database.write(lambda session: log.open_run(session, "first", begun, alone=True))
    assert database.write(lambda session: log.open_run(session, "second", moment(NOW), alone=False)) == 0
    assert (read(database).runs.open, read(database).is_complete) == (2, True)
    database.write(lambda session: log.touch_run(session, "second", moment(NOW), ended=True))
    assert database.write(lambda session: log.open_run(session, RUN, moment(NOW), alone=True)) == 1
    reading = read(database)
    runs = reading.runs
    assert (runs.count, runs.clean, runs.unclean, runs.open, runs.last_flush_at) == (3, 1, 1, 1, moment(NOW))
    (loss,) = reading.losses
    assert (loss.day, loss.run_id, loss.reason, loss.trips, loss.scans) == (
        "2026-09-17",
        "first",
        "unclean_exit",
        None,
        None,
    )
    assert (reading.is_complete, reading.lost_trips, reading.lost_scans) == (False, 0, 0)
