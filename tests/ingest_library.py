"""A library with a worker, without a server: what ingest tests act on. The extractor is the real child process."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from app.clock import SystemClock
from app.ingest.extract.extractor import Extractor
from app.ingest.fetch_pages import WebPages
from app.ingest.fetch_rules import Rules
from app.ingest.fetch_work import Fetching
from app.ingest.notify import Notifier, Notifying, WatchRefusedError
from app.ingest.reading import TextExtractor
from app.ingest.sources import Sources
from app.ingest.stored_files import StoredFiles
from app.ingest.uploads import Arrival
from app.ingest.watched import WatchedFolders
from app.ingest.worker import Tools, Worker
from app.search.embeddings import Embedder
from app.search.generations import Embedders
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import documents, integrity, scan_jobs
from app.store.documents import DocumentDetail, DocumentRow
from app.store.engine import Database
from app.store.migrate import migrate
from tests.fake_embedder import WordEmbedder
from tests.waiting import until

USER = 1


def refuse_to_watch(folders: Sequence[str]) -> Notifier:
    """A system that watches no folder: a scan happens when a test asks for it, and no other one beside it."""
    raise WatchRefusedError("none in tests")


class IngestLibrary:
    """One life of a library: operations, and a worker from `start` to the end of the `with` block."""

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | Embedders | None = None,
        extractor: TextExtractor | None = None,
        busy: Callable[[], bool] = lambda: False,
        starting: Callable[[], bool] = lambda: False,
        notifying: Notifying = refuse_to_watch,
        fetching: Fetching | None = None,
    ) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.database = Database(settings.database)
        migrate(self.database)
        self.embedder = embedder or WordEmbedder()
        self.files = StoredFiles(settings.data_dir)
        self.index = VectorIndex()
        reading = extractor or Extractor()
        giving = {"busy": busy, "starting": starting}
        tools = Tools(self.files, reading, self.embedder, self.index, **giving, notifying=notifying, fetching=fetching)
        self.worker = Worker(self.database, settings, self.clock, tools)
        self.sources = Sources(self.database, self.files, self.clock, self.index, self.worker.wake)
        self.pages = WebPages(self.database, Rules(settings.fetch_allow_cidrs), self.clock, self.worker.wake)
        self.folders = WatchedFolders(self.database, settings, self.clock, self.worker.wake)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.worker.stop()
        self.database.close()

    def start(self) -> Self:
        """Begins to work."""
        self.worker.start()
        return self

    def add(self, name: str, content: bytes | str) -> int:
        """Uploads one file and returns its document's id."""
        return self.add_all({name: content})[0]

    def add_all(self, contents: Mapping[str, bytes | str]) -> list[int]:
        """Uploads files together and returns their documents' ids."""
        arrivals: list[Arrival] = []
        for name, content in contents.items():
            incoming = self.files.begin()
            incoming.write(content.encode() if isinstance(content, str) else content)
            arrivals.append(Arrival(name, incoming.done()))
        return [item.document_id for item in self.sources.add_uploads(USER, arrivals) if item is not None]

    def settle(self, timeout_s: float = 30) -> None:
        """Waits until no job is left."""
        until(self.worker.is_idle, "all jobs done", timeout_s)

    def wait_for(self, document_id: int, *statuses: str, timeout_s: float = 30) -> DocumentRow:
        """Waits until a document is in one of `statuses`."""
        until(lambda: self.row(document_id).status in statuses, f"document {document_id} in {statuses}", timeout_s)
        return self.row(document_id)

    def row(self, document_id: int) -> DocumentRow:
        """A document's row now."""
        return self.detail(document_id).row

    def detail(self, document_id: int) -> DocumentDetail:
        """A document with its text."""
        return self.database.read(lambda session: documents.get_document(session, USER, document_id))

    def rows(self) -> list[DocumentRow]:
        """Every document, by path."""
        filters = documents.DocumentFilters()
        page = self.database.read(lambda session: documents.list_documents(session, USER, filters, limit=100_000))
        return sorted(page.rows, key=lambda row: row.path)

    def paths(self) -> list[str]:
        """Every document's path."""
        return [row.path for row in self.rows()]

    def orphans(self) -> integrity.Orphans:
        """What belongs to nothing."""
        return self.database.read(integrity.orphans)

    def stored_files(self) -> list[str]:
        """The names of the stored files."""
        return sorted(path.name for path in (self.settings.data_dir / "files").rglob("*") if path.is_file())

    def temp_files(self) -> list[Path]:
        """Temporary files that lie about."""
        return list((self.settings.data_dir / "tmp").iterdir())

    def scan(self, collection_id: int) -> scan_jobs.ScanState:
        """Scans a folder, waits for everything that follows, and returns the scan's outcome."""
        self.folders.request_scan(USER, collection_id)
        self.settle()
        return self.scan_state(collection_id)

    def scan_state(self, collection_id: int) -> scan_jobs.ScanState:
        """The newest scan of a folder."""
        state = self.database.read(lambda session: scan_jobs.scan_state(session, collection_id))
        assert state is not None
        return state


def assert_sound(library: IngestLibrary) -> None:
    """Nothing is orphaned, in the database or on disk."""
    found = library.orphans()
    assert found.is_sound, found
    needed = sorted({row.sha256 for row in library.rows() if row.source != "folder" and row.sha256})
    assert library.stored_files() == needed
    assert library.temp_files() == []
