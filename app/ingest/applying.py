"""What a scan found out, written to the database: some documents in one transaction, none while files are read.

Owns these transactions and their counts; what changed is `app.ingest.scan`'s to find out. Each begins by asking whether
the job is still this worker's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import TypeVar

from app.clock import Clock
from app.ingest.comparing import Hashed
from app.ingest.removal import remove_documents
from app.search import fulltext
from app.search.vectors import VectorIndex
from app.store import intake, jobs
from app.store.engine import Database, Session

APPLY_AT_ONCE = 100
APPLY_BESIDE_TURNS = 20
"""Documents of one transaction: up to 100 ms of the only writer's time, and 20 where someone is asking questions."""

REMOVE_AT_ONCE = 20
"""One that is removed, whose passages go with it, costs as much as five that are new."""

T = TypeVar("T")


class LeaseLostError(Exception):
    """Another worker took the job over, or the collection is being removed: stop, and change nothing more."""


@dataclass(slots=True)
class ScanResult:
    """What a scan did, in documents; `skipped` counts entries by `SkipReason`, `moving` what was left for the next
    look, because it was still being written or moved about."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    moving: int = 0
    skipped: dict[str, int] | None = None

    def changes(self) -> dict[str, int]:
        """What is different now."""
        return {name: getattr(self, name) for name in ("added", "changed", "renamed", "removed")}


@dataclass(slots=True)
class Findings:
    """What is to be written: new files, rows whose file changed, was only touched, or has a new name."""

    fresh: list[Hashed] = field(default_factory=list[Hashed])
    changed: list[tuple[intake.KnownFile, Hashed]] = field(default_factory=list[tuple[intake.KnownFile, Hashed]])
    touched: list[tuple[intake.KnownFile, Hashed]] = field(default_factory=list[tuple[intake.KnownFile, Hashed]])
    renamed: list[tuple[intake.KnownFile, Hashed]] = field(default_factory=list[tuple[intake.KnownFile, Hashed]])

    def __len__(self) -> int:
        return len(self.fresh) + len(self.changed) + len(self.touched) + len(self.renamed)


class Applying:
    """Writes for one scan job, and counts into its result."""

    def __init__(
        self, database: Database, index: VectorIndex, clock: Clock, job: jobs.ClaimedJob, collection_id: int
    ) -> None:
        self._database = database
        self._index = index
        self._clock = clock
        self._job = job
        self._collection_id = collection_id
        self.result = ScanResult()
        self.touched = 0
        """Files with another time but the same content."""

    def write(self, found: Findings) -> None:
        """Queues and notes what was found, all of it in one transaction.

        Raises:
            LeaseLostError: when the job is no longer this worker's.
        """
        if not len(found):
            return
        self._guarded(lambda session: self._write(session, found))
        self.result.added += len(found.fresh)
        self.result.changed += len(found.changed)
        self.touched += sum(not row.is_removed for row, _ in found.touched)
        self.result.renamed += sum(not row.is_removed for row, _ in found.renamed)

    def remove(self, rows: Sequence[intake.KnownFile]) -> None:
        """Takes documents out whose files are gone.

        Raises:
            LeaseLostError: when the job is no longer this worker's.
        """
        for some in _slices(rows):
            ids = [row.id for row in some]
            self._index.discard(self._guarded(lambda session, ids=ids: remove_documents(session, ids)))
            self.result.removed += sum(not row.is_removed for row in some)

    def _write(self, session: Session, found: Findings) -> None:
        now = self._clock.now()
        due: list[jobs.NewJob] = []
        for row, hashed in found.renamed:
            _rename(session, row, hashed)
            if row.was_missed or (not row.is_removed and _ending(row.path) != _ending(hashed.file.path)):
                due.append(_read_again(session, row, hashed, now))
        for row, hashed in found.touched:
            intake.note_file(session, row.id, mtime_ns=hashed.file.mtime_ns, bytes=hashed.file.bytes)
        for row, hashed in found.changed:
            due.append(_read_again(session, row, hashed, now))
        new = [
            intake.NewDocument(
                self._collection_id, "folder", one.file.path, one.sha256, one.file.bytes, one.file.mtime_ns
            )
            for one in found.fresh
        ]
        ids = intake.add_documents(session, new, now)
        due += [jobs.ingest_job(number, one.sha256) for number, one in zip(ids, found.fresh, strict=True)]
        jobs.enqueue(session, due, now)

    def _guarded(self, work: Callable[[Session], T]) -> T:
        def guarded(session: Session) -> T:
            if not jobs.held(session, [self._job]):
                raise LeaseLostError
            return work(session)

        return self._database.write(guarded)


def _rename(session: Session, row: intake.KnownFile, hashed: Hashed) -> None:
    """The name is searchable, so full text must forget the old one first."""
    fulltext.unindex(session, row.id, keeps_text=True)
    intake.note_file(session, row.id, path=hashed.file.path, mtime_ns=hashed.file.mtime_ns)
    fulltext.index_document(session, row.id)


def _read_again(session: Session, row: intake.KnownFile, hashed: Hashed, now: datetime) -> jobs.NewJob:
    """Has it wait for its reading; the job for that is still to be queued."""
    changes = {"sha256": hashed.sha256, "bytes": hashed.file.bytes, "mtime_ns": hashed.file.mtime_ns}
    intake.requeue(session, row.id, now, **changes)
    jobs.drop_failed(session, row.id)
    return jobs.ingest_job(row.id, hashed.sha256)


def _ending(path: str) -> str:
    """What of a name tells how text is read (`extract.sniff`): under another one the same bytes are another text, or
    none."""
    return PurePosixPath(path).suffix.lower()


def _slices(values: Sequence[T]) -> Iterable[Sequence[T]]:
    starts: Iterator[int] = iter(range(0, len(values), REMOVE_AT_ONCE))
    return (values[start : start + REMOVE_AT_ONCE] for start in starts)
