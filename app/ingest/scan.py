"""One folder compared with the database: new, changed, renamed, gone.

Owns that comparison and its transactions (at most `APPLY_AT_ONCE` files each, none while files are read). Walking and
opening are `app.ingest.folders`', reading a document's text is `app.ingest.pipeline`'s. Called by the worker.

A file is unchanged when size and time are; else its hash decides. A new path whose hash a vanished path had is that
document, renamed. A vanished document is deleted; one that a person took out (a tombstone) stays out until its file's
content changes. Pictures, archives and other binary files are counted, not listed; office formats nobody here reads
yet are listed, since a person would look for them.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from app.clock import Clock
from app.ingest.errors import IngestError
from app.ingest.extract.decode import is_binary
from app.ingest.filenames import SkipReason
from app.ingest.folders import FolderError, FoundFile, Walk, open_file, walk
from app.ingest.removal import remove_documents
from app.ingest.watched import SAMPLE_ONLY
from app.search import fulltext
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import collections, intake, jobs
from app.store.engine import Database, Session

APPLY_AT_ONCE = 100
HEAD_BYTES = 8192

_OFFICE = frozenset({".doc", ".docx", ".docm", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".epub"})
_PRIVATE_KEY = b"PRIVATE KEY-----"

T = TypeVar("T")


@dataclass(slots=True)
class ScanResult:
    """What a scan did, in documents; `skipped` counts entries by `SkipReason`."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: dict[str, int] | None = None


class LeaseLostError(Exception):
    """Another worker took the job over, or the collection is being removed: stop, and change nothing more."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file with its content's hash; "" for one over the size limit, which is not read."""

    file: FoundFile
    sha256: str


@dataclass(slots=True)
class _Plan:
    """What a walk asks for; documents by the row that is known of them."""

    fresh: list[_Found]
    changed: list[tuple[intake.KnownFile, _Found]]
    touched: list[tuple[intake.KnownFile, _Found]]
    gone: list[intake.KnownFile]


class Scanner:
    """Runs scans.

    Args:
        stopping: Whether the process wants to end; asked between files.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        index: VectorIndex,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._index = index
        self._stopping = stopping
        self._skipped: Counter[str] = Counter()

    def scan(self, job: jobs.ClaimedJob) -> ScanResult:
        """Brings a collection up to date with its folder.

        Raises:
            FolderError: `folder_missing`, `folder_unreadable`, or `folder_empty`: nothing is there although documents
                are known, which looks like a disk that is not mounted; nothing is changed, unless the job says that it
                may be so.
            LeaseLostError: when the job is no longer this worker's.
        """
        collection_id = int(job.payload["collection_id"])
        row = self._database.read(lambda session: collections.find_collection(session, collection_id))
        if row is None or row.root is None:
            raise LeaseLostError
        root = Path(row.root)
        found = walk(root, only=SAMPLE_ONLY if row.kind == "sample" else (), without=self._settings.data_dir)
        known = self._database.read(lambda session: intake.list_files(session, collection_id))
        may_be_empty = bool(job.payload.get("may_be_empty")) and not found.unread
        if not found.files and not may_be_empty and any(not file.is_removed for file in known):
            raise FolderError("folder_empty", params={"path": row.root})
        self._skipped = Counter(found.skipped)
        plan = self._compare(root, found, known)
        result = ScanResult(changed=len(plan.changed))
        result.unchanged = sum(not file.is_removed for file in known) - len(plan.changed) - len(plan.gone)
        self._apply(job, collection_id, plan, result)
        result.skipped = dict(sorted(self._skipped.items()))
        return result

    def finish(self, job: jobs.ClaimedJob, result: ScanResult, error: str | None) -> None:
        """Stores the outcome for the page."""

        def work(session: Session) -> None:
            now = self._clock.now()
            if jobs.finish_scan(session, job, asdict(result), error, now) and error is None:
                collections.mark_scanned(session, int(job.payload["collection_id"]), now)

        self._database.write(work)

    def _compare(self, root: Path, found: Walk, known: Sequence[intake.KnownFile]) -> _Plan:
        by_path = {file.path: file for file in known}
        plan = _Plan(
            [], [], [], [file for file in known if file.path not in found.files and not _is_unread(file, found)]
        )
        for path, file in found.files.items():
            row = by_path.get(path)
            if row is not None and (row.bytes, row.mtime_ns) == (file.bytes, file.mtime_ns):
                continue
            read = self._read(root, file, is_known=row is not None)
            if read is None:
                continue
            if row is None:
                plan.fresh.append(read)
            elif row.sha256 == read.sha256:
                plan.touched.append((row, read))
            else:
                plan.changed.append((row, read))
        return plan

    def _read(self, root: Path, file: FoundFile, *, is_known: bool) -> _Found | None:
        """Hashes a file; None for one that is no document or cannot be read now."""
        if self._stopping():
            raise LeaseLostError
        if file.bytes > self._settings.upload_max_mb * 1024 * 1024:
            return _Found(file, "")
        try:
            with open_file(root, file.path) as stream:
                head = stream.read(HEAD_BYTES)
                reason = None if is_known else no_document(head, file.path)
                if reason is not None:
                    self._skipped[reason] += 1
                    return None
                sha = hashlib.sha256(head)
                while data := stream.read(1024 * 1024):
                    sha.update(data)
        except (IngestError, OSError):
            self._skipped["unreadable"] += 1
            return None
        return _Found(file, sha.hexdigest())

    def _apply(self, job: jobs.ClaimedJob, collection_id: int, plan: _Plan, result: ScanResult) -> None:
        renamed = _renames(plan)
        for some in _slices(renamed):
            self._write(job, lambda session, some=some: [_rename(session, row, read) for row, read in some])
        moved = {row.id for row, _ in renamed}
        gone = [row for row in plan.gone if row.id not in moved]
        for some in _slices(gone):
            ids = [row.id for row in some]
            self._index.discard(self._write(job, lambda session, ids=ids: remove_documents(session, ids)))
        for some in _slices(plan.touched):
            self._write(job, lambda session, some=some: [_touch(session, row, read) for row, read in some])
        for some in _slices(plan.changed):
            self._write(job, lambda session, some=some: self._change(session, some))
        taken = {id(read) for _, read in renamed}
        fresh = [read for read in plan.fresh if id(read) not in taken]
        for some in _slices(fresh):
            self._write(job, lambda session, some=some: self._add(session, collection_id, some))
        result.renamed = sum(not row.is_removed for row, _ in renamed)
        result.removed = sum(not row.is_removed for row in gone)
        result.added = len(fresh)

    def _write(self, job: jobs.ClaimedJob, work: Callable[[Session], T]) -> T:
        def guarded(session: Session) -> T:
            if not jobs.held(session, [job]):
                raise LeaseLostError
            return work(session)

        return self._database.write(guarded)

    def _change(self, session: Session, some: Sequence[tuple[intake.KnownFile, _Found]]) -> None:
        now = self._clock.now()
        for row, read in some:
            file = read.file
            changes = {"sha256": read.sha256, "bytes": file.bytes, "mtime_ns": file.mtime_ns}
            intake.requeue(session, row.id, now, **changes)
            jobs.drop_failed(session, row.id)
        jobs.enqueue(session, [jobs.ingest_job(row.id, read.sha256) for row, read in some], now)

    def _add(self, session: Session, collection_id: int, some: Sequence[_Found]) -> None:
        now = self._clock.now()
        new = [
            intake.NewDocument(
                collection_id, "folder", read.file.path, read.sha256, read.file.bytes, read.file.mtime_ns
            )
            for read in some
        ]
        ids = intake.add_documents(session, new, now)
        pairs = zip(ids, some, strict=True)
        jobs.enqueue(session, [jobs.ingest_job(document_id, read.sha256) for document_id, read in pairs], now)


def _renames(plan: _Plan) -> list[tuple[intake.KnownFile, _Found]]:
    """Pairs of a vanished row and a new file of the same content; one of the same name first."""
    vanished: defaultdict[str, list[intake.KnownFile]] = defaultdict(list)
    for row in plan.gone:
        if row.sha256:
            vanished[row.sha256].append(row)
    pairs: list[tuple[intake.KnownFile, _Found]] = []
    for read in plan.fresh:
        rows = vanished.get(read.sha256)
        if rows:
            name = PurePosixPath(read.file.path).name
            best = next((row for row in rows if PurePosixPath(row.path).name == name), rows[0])
            rows.remove(best)
            pairs.append((best, read))
    return pairs


def _rename(session: Session, row: intake.KnownFile, read: _Found) -> None:
    """The name is searchable, so full text must forget the old one first."""
    fulltext.unindex(session, row.id)
    intake.note_file(session, row.id, path=read.file.path, mtime_ns=read.file.mtime_ns)
    fulltext.index_document(session, row.id)


def _touch(session: Session, row: intake.KnownFile, read: _Found) -> None:
    intake.note_file(session, row.id, mtime_ns=read.file.mtime_ns, bytes=read.file.bytes)


def no_document(head: bytes, path: str) -> SkipReason | None:
    """Why a folder's file is none, by its first `HEAD_BYTES` bytes: a private key, or binary of no known format."""
    if _PRIVATE_KEY in head:
        return "secret"
    is_office = PurePosixPath(path.lower()).suffix in _OFFICE
    is_pdf = b"%PDF-" in head[:1024]
    return "unsupported" if is_binary(head) and not is_office and not is_pdf else None


def _is_unread(file: intake.KnownFile, found: Walk) -> bool:
    """Whether it lies below a directory that could not be listed, so that nothing is known of it."""
    return any(file.path.startswith(folder) for folder in found.unread)


def _slices(values: Sequence[T]) -> Iterable[Sequence[T]]:
    starts: Iterator[int] = iter(range(0, len(values), APPLY_AT_ONCE))
    return (values[start : start + APPLY_AT_ONCE] for start in starts)
