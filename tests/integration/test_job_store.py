"""Jobs: who holds one, and what a worker that lost its job may still believe."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from app.settings import Settings
from app.store import jobs, scan_jobs
from app.store.engine import Database, Session
from app.store.migrate import migrate

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    opened = Database(settings.database)
    migrate(opened)
    yield opened
    opened.close()


def queue_and_claim(session: Session, key: str) -> jobs.ClaimedJob:
    jobs.enqueue(session, [jobs.NewJob("scan", key)], NOW)
    return jobs.claim(session, "scan", 1, 60, NOW)[0]


def test_a_job_that_was_deleted_is_not_taken_for_the_next_one(database: Database) -> None:
    """A document deleted while it is read takes its job along; the next document's job is another one, even in the same
    place of the table and claimed as often, so that the late reader ends nothing that is not its own."""

    def work(session: Session) -> tuple[jobs.ClaimedJob, jobs.ClaimedJob]:
        lost = queue_and_claim(session, "first")
        jobs.drop_key(session, "first")
        return lost, queue_and_claim(session, "second")

    lost, current = database.write(work)

    def check(session: Session) -> tuple[set[int], int]:
        jobs.finish(session, [lost])
        return jobs.held(session, [lost]), jobs.pending(session)

    assert lost.fence == current.fence
    assert database.write(check) == (set(), 1)
    assert database.read(lambda session: jobs.held(session, [current])) == {current.id}


def test_a_job_claimed_anew_is_no_longer_its_first_holders(database: Database) -> None:
    """The fence grows: what the first holder writes under the old one changes nothing."""

    def work(session: Session) -> tuple[jobs.ClaimedJob, jobs.ClaimedJob]:
        first = queue_and_claim(session, "scan")
        jobs.release_all(session)
        return first, jobs.claim(session, "scan", 1, 60, NOW)[0]

    first, second = database.write(work)
    assert first.id == second.id

    def late(session: Session) -> bool:
        jobs.fail(session, first, "scan_failed", NOW)
        return scan_jobs.finish_scan(session, first, {}, None, NOW)

    assert database.write(late) is False
    assert database.read(lambda session: jobs.held(session, [first, second])) == {second.id}
