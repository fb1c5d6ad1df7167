"""What `docent worker` and `docent ingest` do. Argument parsing and printing belong to `app.cli`.

Both work beside a server on the same data folder: jobs have leases, and who finds no other process alive does the work
itself.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.clock import Clock, SystemClock
from app.errors import AppError, NotFoundError, TooLargeError
from app.ingest.comparing import HEAD_BYTES, no_document
from app.ingest.errors import IngestError
from app.ingest.extract.extractor import Extractor
from app.ingest.fetch_pages import AddedPage, WebPages
from app.ingest.fetch_rules import Rules
from app.ingest.filenames import clean_name
from app.ingest.folders import check_root, open_file, walk
from app.ingest.sources import Sources
from app.ingest.stored_files import ProcessLock, StoredFiles
from app.ingest.uploads import Arrival
from app.ingest.watched import WatchedFolders
from app.ingest.worker import Tools, Worker
from app.search.embeddings import Embedder
from app.search.generations import Embedders
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import documents, pausing
from app.store.documents import DocumentRow
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID

ADD_AT_ONCE = 20
LOOK_S = 0.3


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the files of one `docent ingest` are; `ended` when nothing more will happen to them."""

    total: int
    searchable: int
    ready: int
    failed: int
    waiting_for_vectors: int

    @property
    def ended(self) -> bool:
        """Whether every file is ready or failed, or waits for an embedder that does not answer."""
        return self.ready + self.failed + self.waiting_for_vectors == self.total


@dataclass(frozen=True, slots=True)
class Ingested:
    """The end of one `docent ingest`: the rows as they are, files that could not even be added, entries passed over."""

    rows: Sequence[DocumentRow]
    refused: Sequence[tuple[str, AppError]]
    skipped: Counter[str]
    paused: bool = False
    """Whether it did not wait, because taking documents in is paused."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed."""
        return not self.refused and not any(row.status == "failed" for row in self.rows)


def run_worker(
    database: Database, settings: Settings, embedder: Embedder | Embedders, wait: Callable[[], object]
) -> bool:
    """Works until `wait` returns; False when something had to be left to its lease."""
    clock, files = SystemClock(), StoredFiles(settings.data_dir)
    worker = Worker(database, settings, clock, Tools(files, Extractor(), embedder, VectorIndex()))
    WatchedFolders(database, settings, clock, worker.wake).ensure_environment()
    worker.start()
    wait()
    return worker.stop()


class Ingest:
    """Adds files and folders as uploads and pages by their addresses, waits, and tells how far they are."""

    def __init__(self, database: Database, settings: Settings, embedder: Embedder | Embedders, clock: Clock) -> None:
        self._database = database
        self._settings = settings
        self._embedder = embedder
        self._clock = clock
        self._files = StoredFiles(settings.data_dir)
        self._skipped: Counter[str] = Counter()
        self._worker: Worker | None = None

    def run(self, paths: Iterable[str], tell: Callable[[Standing], None]) -> Ingested:
        """Takes in every path or address; `tell` is called whenever the standing changed."""
        given = list(paths)
        urls = [path for path in given if path.lower().startswith(("http://", "https://"))]
        sources = Sources(self._database, self._files, self._clock, VectorIndex(), self._wake)
        ids: list[int] = []
        refused: list[tuple[str, AppError]] = []
        try:
            self._work_if_alone()
            for page in self._pages(urls):
                refused += [] if page.error is None else [(page.url, page.error)]
                ids += [] if page.document_id is None else [page.document_id]
            for some in _batched(self._arrivals(path for path in given if path not in urls)):
                refused += [(arrival.name, arrival.error) for arrival in some if arrival.error is not None]
                added = sources.add_uploads(LOCAL_USER_ID, some)
                ids += [item.document_id for item in added if item is not None]
            rows = self._wait(ids, tell)
        finally:
            if self._worker is not None:
                self._worker.stop()
        return Ingested(rows, refused, self._skipped, paused=self._rests(rows))

    def _pages(self, urls: Sequence[str]) -> list[AddedPage]:
        pages = WebPages(self._database, Rules(self._settings.fetch_allow_cidrs), self._clock, self._wake)
        return pages.add(LOCAL_USER_ID, urls) if urls else []

    def _arrivals(self, paths: Iterable[str]) -> Iterator[Arrival]:
        for path in paths:
            place = Path(path).expanduser()
            try:
                if place.is_dir():
                    yield from self._folder(check_root(str(place.resolve()), self._settings.data_dir))
                elif place.is_file():
                    yield self._file(place.resolve().parent, place.resolve().name, place.name)
                else:
                    yield Arrival(path, None, NotFoundError("path_missing"))
            except AppError as error:
                yield Arrival(path, None, error)

    def _folder(self, root: Path) -> Iterator[Arrival]:
        found = walk(root, without=self._settings.data_dir)
        self._skipped += found.skipped
        for path in found.files:
            name = f"{root.name}/{path}"
            try:
                with open_file(root, path) as file:
                    reason = no_document(file.read(HEAD_BYTES), path)
                if reason is None:
                    yield self._file(root, path, name)
                else:
                    self._skipped[reason] += 1
            except IngestError as error:
                yield Arrival(name, None, error)

    def _file(self, root: Path, path: str, name: str) -> Arrival:
        with open_file(root, path) as file:
            return self._copy(file, clean_name(name))

    def _copy(self, file: BinaryIO, name: str) -> Arrival:
        limit = self._settings.upload_max_mb
        incoming = self._files.begin()
        while data := file.read(1024 * 1024):
            if incoming.bytes + len(data) > limit * 1024 * 1024:
                incoming.drop()
                error = TooLargeError("upload_too_large", setting="UPLOAD_MAX_MB", params={"limit": limit})
                return Arrival(name, None, error)
            incoming.write(data)
        return Arrival(name, incoming.done())

    def _wait(self, ids: list[int], tell: Callable[[Standing], None]) -> list[DocumentRow]:
        resting = threading.Event()
        last: Standing | None = None
        while True:
            rows = self._database.read(lambda session: documents.get_rows(session, LOCAL_USER_ID, ids))
            standing = _standing(rows)
            if standing != last:
                tell(standing)
                last = standing
            if standing.ended or self._rests(rows):
                return rows
            self._work_if_alone()
            resting.wait(LOOK_S)

    def _rests(self, rows: Sequence[DocumentRow]) -> bool:
        """Whether files are left and somebody has paused."""
        return not _standing(rows).ended and self._database.read(pausing.is_paused)

    def _work_if_alone(self) -> None:
        """Starts a worker unless a server or another command has one."""
        if self._worker is not None:
            return
        with ProcessLock(self._settings.data_dir) as lock:
            is_alone = lock.is_first
        if is_alone:
            tools = Tools(self._files, Extractor(), self._embedder, VectorIndex())
            self._worker = Worker(self._database, self._settings, self._clock, tools)
            self._worker.start()

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()


def _standing(rows: Sequence[DocumentRow]) -> Standing:
    states = Counter(row.status for row in rows)
    return Standing(
        total=len(rows),
        searchable=states["embedding"] + states["ready"],
        ready=states["ready"],
        failed=states["failed"],
        waiting_for_vectors=sum(row.status == "embedding" and row.error is not None for row in rows),
    )


def _batched(arrivals: Iterator[Arrival]) -> Iterator[list[Arrival]]:
    batch: list[Arrival] = []
    for arrival in arrivals:
        batch.append(arrival)
        if len(batch) == ADD_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
