"""The worker: lanes that read, store, embed and scan, with leases kept by a heartbeat.

Owns threads and their clean end; what a lane does is `pipeline`'s, `embedding`'s and
`folder_work`'s. Runs inside the app or as `docent worker`; several may run on one database, each job has one holder.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.clock import Clock
from app.ingest.building import Building, Builds
from app.ingest.embedding import EMBED_MAX_S, Embedding
from app.ingest.extract.extractor import Extractor
from app.ingest.fetch_work import Fetching, FetchWork, fetching_from
from app.ingest.floors import Floors
from app.ingest.folder_work import FolderWork, Hooks
from app.ingest.lanes import Lane
from app.ingest.language_work import LanguageWork
from app.ingest.leases import Leases
from app.ingest.notify import Notifying, open_notifier
from app.ingest.part_filling import PartFilling
from app.ingest.pausing import Pausing
from app.ingest.pipeline import LEASE_S, Pipeline
from app.ingest.progress import Batch, ProgressBoard, Stage
from app.ingest.reading import DocumentReader, TextExtractor
from app.ingest.recognising import OCR_MAX_S, Giving, Means, Recognising
from app.ingest.rereading import Rereading
from app.ingest.serving import Serving
from app.ingest.stored_files import ProcessLock, StoredFiles
from app.ingest.storing import Storing
from app.ingest.telling import Telling
from app.ingest.tesseract import find_tesseract
from app.ingest.yielding import YIELD_MAX_S, Ahead, TurnsFirst, Yielding
from app.logs import kv
from app.metrics import Metrics
from app.search.embeddings import Embedder
from app.search.generations import Embedders, embedders_of
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import collections, documents, intake, jobs, readings, removals, scan_jobs
from app.store.engine import Database, Session

STOP_S = 2.0

TRICKLE_S = 0.5
"""How long after a document the next one is expected: files of one upload come one after the other."""

_log = logging.getLogger("app.ingest")


@dataclass(frozen=True, slots=True)
class Tools:
    """What the worker works with. `busy` says whether a turn is streaming just now, `starting` whether one has just
    begun, `notifying` watches folders."""

    files: StoredFiles
    extractor: TextExtractor
    embedder: Embedder | Embedders
    index: VectorIndex
    busy: Callable[[], bool] = lambda: False
    starting: Callable[[], bool] = lambda: False
    metrics: Metrics = field(default_factory=Metrics)
    notifying: Notifying = open_notifier
    fetching: Fetching | None = None


class Worker:
    """Works in the background: `start`, `wake` when something was queued, `stop`. Not to be started twice."""

    def __init__(self, database: Database, settings: Settings, clock: Clock, tools: Tools) -> None:
        self.board = ProgressBoard(clock)
        self._database = database
        self._settings = settings
        self._clock = clock
        self._tools = tools
        self._stopping = threading.Event()
        self._leases = Leases(database, clock, LEASE_S)
        self._pausing = Pausing(database, clock, self.wake)
        self._read_until = 0.0
        self._in_hand = 0
        self._reader = DocumentReader(
            tools.files, tools.extractor, self.board, clock=clock, max_mb=settings.upload_max_mb
        )
        reads = settings.ocr != "off"
        self._pipeline = Pipeline(
            database, tools.index, self.board, clock=clock, metrics=tools.metrics, reads_pictures=reads
        )
        embedders = embedders_of(tools.embedder)
        self._ahead = Ahead(TurnsFirst(clock, tools.starting))
        before_vectors = replace(self._ahead, work=self._is_reading)
        yielding = Yielding(clock, tools.busy, self._stopping, EMBED_MAX_S, ahead=before_vectors)
        resting = Yielding(clock, tools.busy, self._stopping, EMBED_MAX_S, self._pausing.is_on, before_vectors)
        serving = Serving(database, settings, embedders, clock)
        self._embedding = Embedding(database, serving, self.board, clock, resting)
        self._floors = Floors(database, embedders, clock, yielding)
        self._building = Building(database, embedders, clock, yielding, Builds(settings.data_dir, tools.index))
        self.build_pace = self._building.pace
        self._recognising = self._make_recognising()
        self._languages = LanguageWork(database, clock, Telling, self._stopping)
        self._turns_first = Yielding(clock, lambda: False, self._stopping, ahead=self._ahead)
        hooks = Hooks(self._stopping, self._leases.hold, self._leases.let_go, self.wake, self._turns_first)
        self._folders = FolderWork(database, settings, clock, tools.index, tools.notifying, hooks)
        self._storing = self._make_storing()
        self._last_scan = clock.monotonic()
        self._lock: ProcessLock | None = None
        self._store_lane = Lane("store", self._storing.step, self._stopping)
        self._embed_lane = Lane("embed", self._embed_step, self._stopping)
        self._ocr_lane = Lane("ocr", self._pausing.unless_on(self._recognising.step), self._stopping)
        self._lanes = self._make_lanes(hooks)

    def _make_lanes(self, hooks: Hooks) -> list[Lane]:
        return [
            Lane("read", self._pausing.unless_on(self._read_step), self._stopping),
            self._store_lane,
            self._embed_lane,
            self._ocr_lane,
            Lane("scan", self._folders.scan_step, self._stopping),
            Lane("watch", self._folders.watch_step, self._stopping),
            Lane("remove", self._folders.remove_step, self._stopping),
            *self._fetch_lanes(hooks),
            Lane("language", self._languages.step, self._stopping),
            Lane("parts", PartFilling(self._database).step, self._stopping),
            Lane("reread", self._make_rereading().step, self._stopping),
            Lane("keep", self._keep_step, self._stopping),
        ]

    def _yielding(self, max_s: float = YIELD_MAX_S) -> Yielding:
        return Yielding(self._clock, self._tools.busy, self._stopping, max_s, self._pausing.is_on, self._ahead)

    def _make_storing(self) -> Storing:
        return Storing(
            self._pipeline,
            self._leases,
            self._turns_first,
            self._stopping,
            is_reading=lambda: self._in_hand > 0,
            stored=self._note_stored,
        )

    def _make_rereading(self) -> Rereading:
        yielding = self._yielding()
        return Rereading(self._database, self._clock, yielding, self.wake)

    def _make_recognising(self) -> Recognising:
        means = Means(lambda: find_tesseract(self._settings.ocr), Extractor, self._reader.opened)
        yielding = self._yielding(OCR_MAX_S)
        giving = Giving(yielding, self._leases.hold, self._leases.let_go, self.wake)
        return Recognising(self._database, self.board, self._clock, means, giving)

    def _fetch_lanes(self, hooks: Hooks) -> list[Lane]:
        fetching = self._tools.fetching or fetching_from(self._settings, self._clock)
        work = FetchWork(self._database, self._tools.files, self.board, self._clock, fetching, hooks)
        return [Lane(f"fetch-{number}", work.step, self._stopping) for number in (1, 2)]

    def start(self) -> None:
        """Takes up what an earlier life left, asks for a scan of every folder, and begins. Blocks for a moment."""
        self._lock = ProcessLock(self._settings.data_dir)
        if self._lock.is_first:
            self._take_up()
            self._lock.share()
        self._queue_scans()
        for lane in self._lanes:
            lane.start()

    def wake(self) -> None:
        """Something was queued: look at once."""
        for lane in self._lanes:
            lane.wake()

    def stop(self) -> bool:
        """Ends within about `STOP_S`: what was read is stored, what was not goes back into the queue. False when a lane
        did not come back in time; its job is taken over once its lease has run out. Blocks."""
        self._stopping.set()
        self._tools.extractor.close()
        self._recognising.close()
        self._languages.close()
        self.wake()
        until = self._clock.monotonic() + STOP_S
        late = [lane for lane in self._lanes if not lane.join(max(0.05, until - self._clock.monotonic()))]
        self._folders.close()
        self._building.close()
        self._storing.finish()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        return not late

    def progress(self, document_id: int) -> Stage | None:
        """What is being done to a document just now."""
        return self.board.get(document_id)

    def batch(self, user_id: int) -> Batch:
        """The user's progress bar. Reads the database."""
        began = self.board.began()
        return self.board.batch(self._database.read(lambda session: documents.progress(session, user_id, began)))

    def is_idle(self) -> bool:
        """Whether no job is left. Reads the database."""
        return not self._database.read(jobs.pending)

    def _take_up(self) -> None:
        """No other process lives: whatever is half-done is nobody's."""

        def work(session: Session) -> tuple[int, int]:
            now = self._clock.now()
            released = jobs.release_all(session)
            unfinished = intake.unfinished(session)
            intake.mark_all_queued(session)
            queued = jobs.enqueue(session, [jobs.waiting_job(*document) for document in unfinished], now)
            waiting = intake.waiting_for_vectors(session)
            queued += jobs.enqueue(session, [jobs.embed_job(document_id) for document_id in waiting], now)
            queued += removals.resume(session, now)
            for document_id in readings.waiting(session):
                readings.ask(session, document_id, now)
            swept = self._tools.files.sweep(intake.upload_shas(session))
            return released + queued, swept

        taken, swept = self._database.write(work)
        if taken or swept:
            _log.info(kv("ingest_resumed", jobs=taken, files_swept=swept))

    def _queue_scans(self) -> None:
        def work(session: Session) -> None:
            due = [scan_jobs.scan_job(row.id) for row in collections.list_scanned(session)]
            jobs.enqueue(session, due, self._clock.now())

        self._last_scan = self._clock.monotonic()
        self._database.write(work)

    def _is_reading(self) -> bool:
        """Whether there are documents nobody can find yet: embedding comes behind them."""
        return self._clock.monotonic() < self._read_until

    def _read_step(self) -> float | None:
        due = self._pipeline.next_due()
        if due != 0:
            return due
        self._read_until = self._clock.monotonic() + LEASE_S
        self.board.note_work()
        tasks = self._pipeline.claim()
        self._leases.hold(task.job for task in tasks)
        try:
            while tasks and self._turns_first.give_way() and not self._pausing.is_on():
                read = self._reader.read(tasks[0])
                if self._stopping.is_set() and read.reason is not None:
                    break
                del tasks[0]
                self._in_hand = len(tasks)
                self._storing.put(read)
                self._store_lane.wake()
                self._storing.wait_for_room()
        finally:
            self._in_hand = 0
            self._read_until = self._clock.monotonic() + TRICKLE_S
            self._leases.let_go(task.job for task in tasks)
            self._pipeline.give_back(tasks)
        return 0

    def _note_stored(self) -> None:
        self._embed_lane.wake()
        self._ocr_lane.wake()

    def _embed_step(self) -> float | None:
        self._embedding.catch_up()
        self._floors.step()
        due = None if self._pausing.is_on() else self._embedding.next_due()
        if due is None or due > 0:
            return min((wait for wait in (due, self._building.step()) if wait is not None), default=None)
        self.board.note_work()
        claimed = self._embedding.claim()
        self._leases.hold(claimed)
        try:
            self._embedding.run(claimed)
        finally:
            self._leases.let_go(claimed)
        return 0

    def _keep_step(self) -> float | None:
        self._leases.beat()
        if self._clock.monotonic() - self._last_scan >= self._settings.watch_rescan_s:
            self._queue_scans()
            self.wake()
        if self.is_idle():
            self.board.note_idle()
        return None
