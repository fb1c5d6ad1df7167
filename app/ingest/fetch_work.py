"""The worker's part for web pages: fetches what is queued, and queues what is due to be looked at again.

Owns the step of a lane and what becomes of an answer: new bytes go the way of an upload, the same ones change nothing,
a page that is gone is marked and kept. How a page is asked for is `app.ingest.egress`', lanes and heartbeats are
`app.ingest.worker`'s.
"""

import errno
import logging
from dataclasses import dataclass

from app.clock import Clock
from app.ingest.egress import Egress, Fetched, Known, Limits, Order
from app.ingest.extract.decode import decode
from app.ingest.fetch_address import parse_address
from app.ingest.fetch_errors import FetchError, FetchStoppedError
from app.ingest.fetch_rules import Rules
from app.ingest.folder_work import Hooks
from app.ingest.pipeline import LEASE_S
from app.ingest.progress import ProgressBoard, Stage
from app.ingest.stored_files import NoSpaceError, StoredFiles, TempFile
from app.logs import kv
from app.settings import Settings
from app.store import intake, jobs, web_pages
from app.store.engine import Database, Session
from app.store.web_pages import FetchItem

RETRY_S = 5.0
RETRY_GROWTH = 6
"""A second try after 5 s, a third after half a minute more, or when the server says."""

LOOK_S = 60.0
"""How often it is looked whether a page is due; daily and weekly need no better."""

READABLE = ("embedding", "ready")

_log = logging.getLogger("app.ingest")


@dataclass(frozen=True, slots=True)
class Fetching:
    """What fetching is done with; `retry_s` is the wait before the second try."""

    egress: Egress
    retry_s: float = RETRY_S


def fetching_from(settings: Settings, clock: Clock) -> Fetching:
    """What an installation fetches with."""
    limits = Limits(max_bytes=settings.upload_max_mb * 1024 * 1024)
    return Fetching(Egress(Rules(settings.fetch_allow_cidrs), limits, clock))


@dataclass(frozen=True, slots=True)
class _Task:
    """A claimed job and the page it is about."""

    job: jobs.ClaimedJob
    item: FetchItem


class FetchWork:
    """Fetches pages; its step may run on several threads."""

    def __init__(
        self,
        database: Database,
        files: StoredFiles,
        board: ProgressBoard,
        clock: Clock,
        fetching: Fetching,
        hooks: Hooks,
    ) -> None:
        self._database = database
        self._files = files
        self._board = board
        self._clock = clock
        self._fetching = fetching
        self._hooks = hooks
        self._look_at = clock.monotonic()

    def step(self) -> float | None:
        """Fetches the next page."""
        self._queue_due()
        due = self._database.read(lambda session: jobs.next_due(session, "fetch", self._clock.now()))
        if due != 0:
            return due
        task = self._database.write(self._claim)
        if task is None:
            return None
        self._board.note_work()
        self._hooks.hold([task.job])
        try:
            self._do(task)
        finally:
            self._hooks.let_go([task.job])
        self._hooks.wake()
        return 0

    def _queue_due(self) -> None:
        """Queues the pages whose time has come; looks once a minute."""
        if self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + LOOK_S
        now = self._clock.now()
        if self._database.read(lambda session: web_pages.has_due(session, now)):
            self._database.write(lambda session: web_pages.queue_due(session, now))

    def _claim(self, session: Session) -> _Task | None:
        now = self._clock.now()
        for job in jobs.expired(session, "fetch", now):
            item = web_pages.find_item(session, job.document_id or 0)
            if item is not None:
                self._fail(session, _Task(job, item), FetchError("fetch_internal"))
            jobs.fail(session, job, "fetch_internal", now)
        for job in jobs.claim(session, "fetch", 1, LEASE_S, now):
            item = web_pages.find_item(session, job.document_id or 0)
            if item is not None:
                return _Task(job, item)
            jobs.finish(session, [job])
        return None

    def _do(self, task: _Task) -> None:
        """Asks, and stores what comes of it. A fault is this page's own."""
        began = self._clock.monotonic()
        incoming = self._files.begin()
        self._board.set(task.item.document_id, Stage("fetching"))
        try:
            self._files.check_space(0)
            order = Order(
                parse_address(task.item.url), incoming.write, self._known(task.item), self._hooks.stopping.is_set
            )
            fetched = self._fetching.egress.fetch(order)
            temp = None if fetched.is_unchanged else incoming.done()
            self._board.clear(task.item.document_id)
            outcome = self._keep(task, fetched, temp)
            self._say(task, outcome, began, size=incoming.bytes)
        except FetchStoppedError:
            self._database.write(lambda session: jobs.release(session, [task.job], now=self._clock.now()))
        except Exception as fault:  # noqa: BLE001 - worker edge: a page's fault is its own
            error = _reason(fault, task)
            outcome = self._database.write(lambda session: self._fail(session, task, error))
            self._say(task, outcome, began, reason=error.reason)
        finally:
            self._board.clear(task.item.document_id)
            incoming.drop()

    def _known(self, item: FetchItem) -> Known | None:
        """What may be asked about instead of asked for: only while its bytes and the text made of them are here."""
        is_here = item.status in READABLE and self._files.path_of(item.sha256).is_file()
        if item.final_url is None or not is_here:
            return None
        return Known(item.final_url, item.etag, item.last_modified)

    def _keep(self, task: _Task, fetched: Fetched, temp: TempFile | None) -> str:
        """Stores an answer; returns the outcome for the line."""
        said = web_pages.Said(fetched.final_url, fetched.etag, fetched.last_modified)
        is_misread = temp is not None and _is_misread(task.item, fetched.charset, temp)

        def work(session: Session) -> tuple[str, str]:
            now, number = self._clock.now(), task.item.document_id
            item = web_pages.find_item(session, number)
            if item is None or not jobs.held(session, [task.job]):
                return "dropped", ""
            jobs.finish(session, [task.job])
            is_same = temp is not None and temp.sha256 == item.sha256
            is_read = is_same and item.status in READABLE and not is_misread
            if temp is None or is_read:
                web_pages.note_same(session, number, said, now)
                return "unchanged", ""
            self._files.place(temp)
            web_pages.note_fetched(session, number, said, now)
            intake.requeue(session, number, now, sha256=temp.sha256, bytes=temp.bytes, encoding=fetched.charset)
            jobs.drop_failed(session, number)
            jobs.enqueue(session, [jobs.ingest_job(number, temp.sha256)], now)
            return "fetched", item.sha256 if item.sha256 != temp.sha256 else ""

        outcome, replaced = self._database.write(work)
        if replaced:
            self._database.write(lambda session: self._drop_file(session, replaced))
        return outcome

    def _drop_file(self, session: Session, sha256: str) -> None:
        if not intake.is_sha_used(session, sha256):
            self._files.remove(sha256)

    def _fail(self, session: Session, task: _Task, error: FetchError) -> str:
        """Notes a failure: to be tried again, for the document's row where there is nothing to read, else beside it."""
        now, number, reason = self._clock.now(), task.item.document_id, error.reason
        item = web_pages.find_item(session, number)
        if item is None or not jobs.held(session, [task.job]):
            return "dropped"
        if error.is_retryable and task.job.attempts < jobs.MAX_ATTEMPTS:
            delay = max(self._fetching.retry_s * RETRY_GROWTH ** (task.job.attempts - 1), error.wait_s)
            jobs.postpone(session, task.job, delay, reason, now)
            web_pages.note_trying(session, number, reason)
            return "retry"
        web_pages.note_failed(session, number, reason, now, is_gone=reason == "fetch_not_found")
        if item.is_readable:
            jobs.finish(session, [task.job])
            return "kept"
        intake.mark_failed(session, number, reason, now)
        jobs.fail(session, task.job, reason, now)
        return "failed"

    def _say(self, task: _Task, outcome: str, began: float, *, size: int = 0, reason: str | None = None) -> None:
        line = kv(
            "web_page",
            id=task.item.document_id,
            collection=task.item.collection_id,
            outcome=outcome,
            reason=reason,
            bytes=size,
            attempt=task.job.attempts,
            total_ms=round((self._clock.monotonic() - began) * 1000),
        )
        _log.info(line)


def _is_misread(item: FetchItem, charset: str | None, temp: TempFile) -> bool:
    """Whether the same bytes were taken for another encoding than the one that the server names and that fits them."""
    if charset is None or item.encoding in (None, charset) or temp.sha256 != item.sha256:
        return False
    return decode(temp.path.read_bytes(), charset)[1] == charset


def _reason(fault: Exception, task: _Task) -> FetchError:
    if isinstance(fault, FetchError):
        return fault
    is_full = isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if is_full or isinstance(fault, NoSpaceError):
        return FetchError("fetch_disk")
    _log.error(kv("page_not_fetched", id=task.item.document_id), exc_info=fault)
    return FetchError("fetch_internal")
