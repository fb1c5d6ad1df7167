"""The worker's part for folders: scans when they are due, watches between them, removals.

Owns the steps of three lanes; the lanes and the leases' heartbeats are `app.ingest.worker`'s. Of several processes one
at a time does this, so that whoever scans is also told what changes; another takes over when it ends.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.clock import Clock
from app.errors import AppError
from app.ingest.applying import LeaseLostError, ScanResult
from app.ingest.live import LiveFolders
from app.ingest.notify import Notifying
from app.ingest.pipeline import LEASE_S
from app.ingest.removal import remove_documents
from app.ingest.scan import Scanner
from app.ingest.stored_files import OneHolder
from app.ingest.yielding import Yielding
from app.logs import kv
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import collections, intake, jobs
from app.store.engine import Database, Session

REMOVE_AT_ONCE = 20
"""Documents of a collection removed in one transaction: other writers get their turn in between."""

_log = logging.getLogger("app.ingest")


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the worker lends: a stop to look at, holding a job's lease, waking the lanes, and whom to let go first."""

    stopping: threading.Event
    hold: Callable[[Iterable[jobs.ClaimedJob]], None]
    let_go: Callable[[Iterable[jobs.ClaimedJob]], None]
    wake: Callable[[], None]
    yielding: Yielding


class FolderWork:
    """Scans, watches and removes."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        index: VectorIndex,
        notifying: Notifying,
        hooks: Hooks,
    ) -> None:
        self._database = database
        self._clock = clock
        self._index = index
        self._hooks = hooks
        self._mine = OneHolder(settings.data_dir / "folders.lock")
        self._mine_lock = threading.Lock()
        self._live = LiveFolders(database, clock, notifying, hooks.wake)
        self._scanner = Scanner(database, settings, clock, index, hooks.yielding, self._live.walked)

    def watch_step(self) -> float | None:
        """Looks after the watches."""
        return self._live.step() if self._is_mine() else None

    def scan_step(self) -> float | None:
        """Does the next scan."""
        job = self._claim("scan", "scan_failed") if self._is_mine() else None
        if job is None:
            return None
        self._hooks.hold([job])
        result, error, started = ScanResult(), None, self._clock.monotonic()
        try:
            result = self._scanner.scan(job)
        except LeaseLostError:
            self._database.write(lambda session: self._give_back(session, job))
            return 0
        except AppError as problem:
            error = problem.code
        finally:
            self._hooks.let_go([job])
        self._scanner.finish(job, result, error)
        seconds = self._clock.monotonic() - started
        parts = [str(part) for part in job.payload.get("folders") or ()]
        self._live.scanned(int(job.payload["collection_id"]), seconds, parts, moving=result.moving > 0)
        self._say_scan(job, result, error, seconds)
        self._hooks.wake()
        return 0

    def remove_step(self) -> float | None:
        """Takes out what is left of the next collection that is being removed."""
        job = self._claim("remove", "remove_failed")
        if job is None:
            return None
        self._hooks.hold([job])
        try:
            ended = self._remove(job)
        finally:
            self._hooks.let_go([job])
        if not ended:
            self._database.write(lambda session: jobs.release(session, [job], now=self._clock.now()))
        return 0

    def close(self) -> None:
        """Ends watching and lets another process have the folders."""
        self._live.close()
        with self._mine_lock:
            self._mine.close()

    def _is_mine(self) -> bool:
        with self._mine_lock:
            return not self._hooks.stopping.is_set() and self._mine.take()

    def _claim(self, kind: jobs.JobKind, dead: str) -> jobs.ClaimedJob | None:
        if self._database.read(lambda session: jobs.next_due(session, kind, self._clock.now())) != 0:
            return None

        def work(session: Session) -> jobs.ClaimedJob | None:
            now = self._clock.now()
            for job in jobs.expired(session, kind, now):
                jobs.fail(session, job, dead, now)
            return next(iter(jobs.claim(session, kind, 1, LEASE_S, now)), None)

        return self._database.write(work)

    def _give_back(self, session: Session, job: jobs.ClaimedJob) -> None:
        """Puts a scan back into the queue, unless what it was about is gone."""
        if collections.find_collection(session, int(job.payload["collection_id"])) is None:
            jobs.finish(session, [job])
        else:
            jobs.release(session, [job], now=self._clock.now())

    def _remove(self, job: jobs.ClaimedJob) -> bool:
        """False when it has to stop before the end, or somebody else goes on with it."""
        collection_id = int(job.payload["collection_id"])

        def some(session: Session) -> tuple[list[str], bool]:
            if not jobs.held(session, [job]):
                raise LeaseLostError
            ids = intake.some_in_collection(session, collection_id, REMOVE_AT_ONCE)
            gone = remove_documents(session, ids)
            is_last = len(ids) < REMOVE_AT_ONCE
            if is_last:
                collections.remove_collection(session, collection_id)
                jobs.finish(session, [job])
            return gone, is_last

        started = self._clock.monotonic()
        while not self._hooks.stopping.is_set():
            try:
                gone, is_last = self._database.write(some)
            except LeaseLostError:
                return False
            self._index.discard(gone)
            if is_last:
                total_ms = round((self._clock.monotonic() - started) * 1000)
                count = job.payload.get("documents", 0)
                _log.info(kv("folder_removed", collection=collection_id, documents=count, total_ms=total_ms))
                return True
        return False

    def _say_scan(self, job: jobs.ClaimedJob, result: ScanResult, error: str | None, seconds: float) -> None:
        line = kv(
            "folder_scan",
            collection=job.payload["collection_id"],
            status="failed" if error else "ok",
            reason=error,
            added=result.added,
            changed=result.changed,
            renamed=result.renamed,
            removed=result.removed,
            unchanged=result.unchanged,
            moving=result.moving,
            skipped=sum((result.skipped or {}).values()),
            total_ms=round(seconds * 1000),
        )
        _log.log(logging.WARNING if error else logging.INFO, line)
