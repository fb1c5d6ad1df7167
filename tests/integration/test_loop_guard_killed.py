"""`kill -9` under load: what the readers show as recorded and lost is what was decided, but for one flush period."""

import multiprocessing
import os
import random
import threading
from multiprocessing.process import BaseProcess

import pytest

from app.clock import SystemClock
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate
from tests.guard_life import PERIOD_S, decide_until_killed
from tests.integration.guard_log_kit import figures_now, guard_log, now_secs, read
from tests.waiting import until

AT_ONCE = 5
LIVES = 10 if os.environ.get("DOCENT_LONG") else 2
"""Kills: `AT_ONCE` × `LIVES`, 10 or 50."""

SLACK_S = 0.6
"""What a write may take on a busy machine, beside the period."""


def resting(seconds: float) -> None:
    threading.Event().wait(seconds)


def start(context: multiprocessing.context.ForkServerContext, url: str) -> tuple[BaseProcess, object]:
    decided = context.Value("q", 0)
    process = context.Process(target=decide_until_killed, args=(url, decided), daemon=True)
    process.start()
    return process, decided


def test_kills_lose_at_most_one_flush_period_and_leave_their_mark(settings: Settings) -> None:
    """Five writers, each on a database of its own, killed at any moment and started again on what they left."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.guard_life"])
    databases = [Database(f"sqlite:///{settings.data_dir / f'{number}' / 'docent.db'}") for number in range(AT_ONCE)]
    least, most = [0] * AT_ONCE, [0] * AT_ONCE
    for database in databases:
        migrate(database)
    chance = random.Random(4)
    for _ in range(LIVES):
        lives = [start(context, database.url) for database in databases]
        for _, decided in lives:
            until(lambda decided=decided: decided.value > 300, "a life under load")
        resting(chance.uniform(0, 2 * PERIOD_S))
        for number, (_, decided) in enumerate(lives):
            least[number] += decided.value
        resting(PERIOD_S + SLACK_S)
        for number, (process, decided) in enumerate(lives):
            process.kill()
            process.join()
            most[number] += decided.value + 2  # told to the log, not yet counted
            process.close()
    for number, database in enumerate(databases):
        check(database, least[number], most[number])
        database.close()


def check(database: Database, least: int, most: int) -> None:
    """Before the next start the runs are open; the next start marks them, and changes no figure."""
    scanned, trips, lost_scans, lost_trips = figures_now(database)
    assert least <= scanned + trips + lost_scans + lost_trips <= most
    assert lost_trips > 0
    following = guard_log(database, database, SystemClock())
    following.flush()
    assert figures_now(database) == (scanned, trips, lost_scans, lost_trips)
    reading = read(database, 2, now_secs())
    assert (reading.runs.count, reading.runs.unclean, reading.is_complete) == (LIVES + 1, LIVES, False)
    assert sum(loss.reason == "unclean_exit" and loss.trips is None for loss in reading.losses) == LIVES
    following.stop()


def test_a_run_that_ended_well_is_not_marked(database: Database) -> None:
    """The control: without the kill, the next start finds a clean run."""
    guard_log(database, database).stop()
    guard_log(database, database).stop()
    assert (read(database).runs.clean, read(database).is_complete) == (2, True)


def test_a_run_that_another_process_holds_is_not_taken_for_dead(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Two at once on one database: neither marks the other; once one is gone for good the next start does."""
    first, second = guard_log(database, database), guard_log(database, database)
    first.flush()
    second.flush()
    assert (read(database).runs.open, read(database).is_complete) == (2, True)
    second.stop()
    third = guard_log(database, database)
    third.stop()
    assert (read(database).runs.open, read(database).runs.unclean) == (1, 0)
    first.stop()
    assert "guard_log_unclean" not in caplog.text
