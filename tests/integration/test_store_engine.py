"""One writer with a queue, readers that never wait."""

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.store.engine import Database
from app.store.migrate import HEAD, DatabaseTooNewError, current_revision, migrate


def test_a_write_is_seen_by_the_next_read(database: Database) -> None:
    """Commit happens before `write` returns."""
    database.write(lambda s: s.execute(text("INSERT INTO settings (key, value, updated_at) VALUES ('a', '1', '2026')")))

    assert database.read(lambda s: s.execute(text("SELECT count(*) FROM settings")).scalar()) == 1


def test_a_failing_write_leaves_nothing_behind(database: Database) -> None:
    """Rolled back as a whole, and the error is the caller's."""

    def work(session):
        session.execute(text("INSERT INTO settings (key, value, updated_at) VALUES ('a', '1', '2026')"))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.write(work)

    assert database.read(lambda s: s.execute(text("SELECT count(*) FROM settings")).scalar()) == 0


def test_a_reader_does_not_wait_for_a_writer(database: Database) -> None:
    """A read finishes while a write transaction is open."""
    inside, release = threading.Event(), threading.Event()

    def slow(session):
        session.execute(text("INSERT INTO settings (key, value, updated_at) VALUES ('a', '1', '2026')"))
        inside.set()
        release.wait(10)

    writer = threading.Thread(target=database.write, args=(slow,))
    writer.start()
    inside.wait(10)
    try:
        assert database.read(lambda s: s.execute(text("SELECT count(*) FROM settings")).scalar()) == 0
    finally:
        release.set()
        writer.join()


def test_readers_cannot_write(database: Database) -> None:
    """The one-writer rule is enforced by the database itself."""
    with pytest.raises(OperationalError):
        database.read(lambda s: s.execute(text("DELETE FROM users")))


def test_a_write_inside_a_write_is_refused(database: Database) -> None:
    """It could only wait for itself."""
    with pytest.raises(RuntimeError):
        database.write(lambda _: database.write(lambda _: None))


def test_parallel_writers_queue_up(database: Database) -> None:
    """Eight threads, no locked errors, every increment kept."""
    database.write(lambda s: s.execute(text("INSERT INTO settings (key, value, updated_at) VALUES ('n', '0', '2026')")))

    def bump(session):
        value = int(session.execute(text("SELECT value FROM settings WHERE key = 'n'")).scalar())
        session.execute(text("UPDATE settings SET value = :v WHERE key = 'n'"), {"v": str(value + 1)})

    threads = [threading.Thread(target=lambda: [database.write(bump) for _ in range(25)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert database.read(lambda s: s.execute(text("SELECT value FROM settings WHERE key = 'n'")).scalar()) == 200


async def _async_round(database: Database) -> int:
    await database.awrite(
        lambda s: s.execute(text("INSERT INTO settings (key, value, updated_at) VALUES ('a', '1', '2026')"))
    )
    return await database.aread(lambda s: s.execute(text("SELECT count(*) FROM settings")).scalar())


def test_async_access_does_not_block_the_loop(database: Database) -> None:
    """blockbuster is on in every test, so a blocking call would raise here."""
    import asyncio

    assert asyncio.run(_async_round(database)) == 1


def test_a_newer_database_is_refused_and_untouched(database: Database) -> None:
    """Running an old Docent on new data must not damage it."""
    assert current_revision(database) == HEAD
    database.write(lambda s: s.execute(text("UPDATE alembic_version SET version_num = '9999'")))

    with pytest.raises(DatabaseTooNewError):
        migrate(database)

    assert current_revision(database) == "9999"


@pytest.mark.parametrize("url", ["postgresql://x/y", "sqlite://", "sqlite:///:memory:"])
def test_other_databases_are_refused(url: str) -> None:
    """A clear sentence instead of a later surprise."""
    with pytest.raises(ValueError, match="sqlite file"):
        Database(url)
