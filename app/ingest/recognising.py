"""The lane that recognises text in pictures of pages: one document at a time, one page after the other.

Owns what happens to a claimed `ocr` job. Each page is kept as soon as it is read, so a kill costs one page; when all
are done the document is read again, and `reading` hands the kept lines to extraction. It gives way while a turn
streams. Drawing is `app.ingest.extract`'s, recognising `app.ingest.tesseract`'s, threads and leases `worker`'s.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.clock import Clock
from app.ingest.errors import ExtractorClosedError, IngestError
from app.ingest.extract import wire
from app.ingest.extract.pdf_lines import PageImage, PageLines
from app.ingest.progress import ProgressBoard, Stage
from app.ingest.yielding import Yielding
from app.logs import kv
from app.store import intake, jobs, readings
from app.store.engine import Database, Session

LEASE_S = 60.0
OCR_MAX_S = 5.0
"""How long a page waits for a streaming turn; it takes a core for some seconds."""
NO_LINES: Mapping[str, Any] = {"height": 0.0, "lines": []}

_log = logging.getLogger("app.ingest")


class Pictures(Protocol):
    """What is needed of `app.ingest.extract.extractor.Extractor`."""

    def picture(self, path: Path, index: int) -> PageImage:
        """The page `index` (from 0)."""
        ...

    def close(self) -> None:
        """Breaks off what is being drawn and draws no more."""
        ...


class PageReader(Protocol):
    """What is needed of `app.ingest.tesseract.Tesseract`."""

    def read(self, picture: PageImage) -> PageLines:
        """The lines of a page."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What recognising works with: `program()` is None where the machine has none, `pictures()` begins a child for one
    document, `opened(item)` gives its bytes as a file with the hash of what is in it."""

    program: Callable[[], PageReader | None]
    pictures: Callable[[], Pictures]
    opened: Callable[[intake.WorkItem], AbstractContextManager[tuple[Path, str, int]]]


@dataclass(frozen=True, slots=True)
class Giving:
    """What the worker lends: how a page waits its turn, how a lease is kept and let go, and how the lanes are told that
    something was queued."""

    yielding: Yielding
    hold: Callable[[Iterable[jobs.ClaimedJob]], None]
    let_go: Callable[[Iterable[jobs.ClaimedJob]], None]
    wake: Callable[[], None]


class Recognising:
    """The work of the `ocr` lane."""

    def __init__(self, database: Database, board: ProgressBoard, clock: Clock, means: Means, giving: Giving) -> None:
        self._database = database
        self._board = board
        self._clock = clock
        self._means = means
        self._giving = giving
        self._pictures: Pictures | None = None

    def step(self) -> float | None:
        """The lane's step: the next document, if there is one."""
        due = self._database.read(lambda session: jobs.next_due(session, "ocr", self._clock.now()))
        if due is None or due > 0:
            return due
        claimed = self.claim()
        self._giving.hold(claimed)
        try:
            for job in claimed:
                self.run(job)
        finally:
            self._giving.let_go(claimed)
        self._giving.wake()
        return 0

    def claim(self) -> list[jobs.ClaimedJob]:
        """Takes the next document; one whose every attempt took the process down is given up."""

        def work(session: Session) -> list[jobs.ClaimedJob]:
            now = self._clock.now()
            for job in jobs.expired(session, "ocr", now):
                self._give_up(session, job, "internal")
            return jobs.claim(session, "ocr", 1, LEASE_S, now)

        return self._database.write(work)

    def run(self, job: jobs.ClaimedJob) -> None:
        """Reads the pictures of the job's document. Never raises for what the file is."""
        document_id = job.document_id
        wanted = None if document_id is None else self._database.read(lambda s: readings.to_recognise(s, document_id))
        if wanted is None:
            self._database.write(lambda session: jobs.finish(session, [job]))
            return
        started = self._clock.monotonic()
        try:
            program = self._means.program()
            if program is None:
                raise IngestError("unsupported")
            with self._means.opened(wanted.item) as (path, sha256, _), self._drawn() as pictures:
                if sha256 != wanted.item.sha256:
                    raise IngestError("vanished")
                is_whole = self._read_pages(job, wanted, path, pictures, program)
        except ExtractorClosedError:
            is_whole = False
        except (IngestError, OSError) as error:
            reason = error.reason if isinstance(error, IngestError) else "unreadable"
            self._database.write(lambda session: self._give_up(session, job, reason))
            _log.warning(kv("document_not_recognised", id=wanted.item.id, reason=reason))
            return
        finally:
            self._board.clear(wanted.item.id)
        if not is_whole:
            self._database.write(lambda session: jobs.release(session, [job], now=self._clock.now()))
            return
        self._finish(job, wanted, round((self._clock.monotonic() - started) * 1000))

    def close(self) -> None:
        """Breaks off drawing, from another thread."""
        pictures = self._pictures
        if pictures is not None:
            pictures.close()

    def _read_pages(
        self, job: jobs.ClaimedJob, wanted: readings.ToRecognise, path: Path, pictures: Pictures, program: PageReader
    ) -> bool:
        """Every page that is missing, and False when the process wants to end before the last."""
        item = wanted.item
        pages = wanted.pages
        if pages is None:
            pages = tuple(range(pictures.picture(path, 0).pages))
        todo = [page for page in pages if page not in wanted.known]
        for place, page in enumerate(todo):
            self._board.set(item.id, Stage("recognising", len(pages) - len(todo) + place + 1, len(pages)))
            if not self._giving.yielding.give_way():
                return False
            lines = self._lines(path, page, pictures, program)
            if lines is None or not self._keep(job, item, page, lines):
                return False
        return True

    def _lines(self, path: Path, page: int, pictures: Pictures, program: PageReader) -> Mapping[str, Any] | None:
        """A page's lines; one that can't be drawn or read has none. None when the process wants to end."""
        try:
            return wire.pack_lines(program.read(pictures.picture(path, page)))
        except ExtractorClosedError:
            return None
        except IngestError as error:
            if self._giving.yielding.is_stopping:
                return None
            _log.warning(kv("page_not_recognised", page=page + 1, reason=error.reason))
            return NO_LINES

    def _keep(self, job: jobs.ClaimedJob, item: intake.WorkItem, page: int, lines: Mapping[str, Any]) -> bool:
        """Stores one page; False when the job is another's by now, or its document gone or changed."""

        def work(session: Session) -> bool:
            current = intake.work_items(session, [item.id]).get(item.id)
            if current is None or current.sha256 != item.sha256 or job.id not in jobs.held(session, [job]):
                return False
            readings.add_page(session, item.id, item.sha256, page, lines, self._clock.now())
            return True

        return self._database.write(work)

    def _finish(self, job: jobs.ClaimedJob, wanted: readings.ToRecognise, ms: int) -> None:
        """The document is read again if any word was found."""
        item = wanted.item

        def work(session: Session) -> readings.ReadingRow | None:
            if job.id not in jobs.held(session, [job]):
                return None
            row = readings.rows_of(session, [item.id]).get(item.id, readings.ReadingRow())
            if row.words:
                intake.requeue(session, item.id, self._clock.now())
                jobs.drop_failed(session, item.id)
                jobs.enqueue(session, [jobs.ingest_job(item.id, item.sha256)], self._clock.now())
            readings.set_ocr(session, item.id, "done")
            jobs.finish(session, [job])
            return row

        row = self._database.write(work)
        if row is not None:
            _log.info(kv("document_recognised", id=item.id, pages=row.recognised, with_words=row.words, ms=ms))

    def _give_up(self, session: Session, job: jobs.ClaimedJob, reason: str) -> None:
        if job.document_id is not None:
            readings.set_ocr(session, job.document_id, "failed")
        jobs.fail(session, job, reason, self._clock.now())

    @contextmanager
    def _drawn(self) -> Generator[Pictures]:
        pictures = self._pictures = self._means.pictures()
        try:
            yield pictures
        finally:
            self._pictures = None
            pictures.close()
