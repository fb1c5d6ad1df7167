"""One folder compared with the database: new, changed, renamed, gone.

Owns that comparison. Walking and opening are `app.ingest.folders`', judging a file `app.ingest.comparing`'s, writing
`app.ingest.applying`'s, reading a document's text `app.ingest.pipeline`'s. Called by `app.ingest.folder_work`.

A file is unchanged when size and time are, and when nothing touched it since the last look; else its hash decides. One
that was away just when it was to be read, and is back, is read again. A new path whose hash a vanished path had is that
document, renamed. A vanished document is deleted once two looks miss it and nothing is on the move; one that a person
took out (a tombstone) stays out until its file's content changes. Pictures, archives and other binary files are
counted, not listed; office formats nobody here reads yet are listed, since a person would look for them.

What was found is written as the walk's files are read, so that a first scan's files are being read while it goes on.
Where none of several known files is left although others are there, the look is in doubt: it may be the bare mount
point of a disk, with a file somebody left there. Nothing is written then until one of the known files is recognised
under a new name; if none is, the look fails and a person is asked.

A job may name the directories in which something changed: then only these are looked at, unless that raises a question
(something vanished, a directory is new) that only a look at the whole answers.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from app.clock import Clock
from app.ingest.applying import APPLY_AT_ONCE, APPLY_BESIDE_TURNS, Applying, Findings, LeaseLostError, ScanResult
from app.ingest.comparing import REST_S, FileReader, Hashed, Moving, Vanished, is_unread
from app.ingest.filenames import SkipReason
from app.ingest.folders import FolderError, FoundFile, Walk, walk
from app.ingest.patterns import Patterns
from app.ingest.watched import SAMPLE_ONLY, SAMPLE_PATTERNS
from app.ingest.yielding import Yielding
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import collections, intake, jobs, scan_jobs
from app.store.collections import CollectionRow
from app.store.engine import Database, Session

WRITE_EVERY_S = 0.5
"""How long findings wait to be written together."""

DOUBT_FROM = 5
"""Documents that must all have vanished at once before it looks like a missing disk; fewer are taken to be deleted."""

Walked = Callable[[int, Path, Walk, Patterns], None]


@dataclass(slots=True)
class _Look:
    """One scan's way through a folder."""

    row: CollectionRow
    patterns: Patterns
    found: Walk
    known: dict[str, intake.KnownFile]
    seen: dict[str, int]
    """`changed_ns` of the files as the last look found them; empty after a start."""

    reader: FileReader
    vanished: Vanished
    applying: Applying
    skipped: Counter[str]
    secret: list[intake.KnownFile]
    """Documents that hold a key now."""

    findings: Findings
    """What is not written yet."""

    is_doubted: bool
    """Whether nothing known was recognised so far, although there should be a lot."""


class Scanner:
    """Runs scans, one at a time.

    Args:
        yielding: Asked between files.
        walked: Told what each walk of a watched folder saw, before any file is read.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Clock,
        index: VectorIndex,
        yielding: Yielding,
        walked: Walked | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._index = index
        self._yielding = yielding
        self._walked = walked
        self._passed: dict[int, dict[str, tuple[int, int, SkipReason]]] = {}
        self._seen: dict[int, dict[str, int]] = {}
        self._inside: dict[int, set[str]] = {}
        """The directories that the last look at the whole saw, by collection."""
        self._skipped: dict[int, dict[str, int]] = {}
        """What it passed over: a look at a part says nothing of the rest."""

    def scan(self, job: jobs.ClaimedJob) -> ScanResult:
        """Brings a collection up to date with its folder.

        Raises:
            FolderError: `folder_missing`, `folder_unreadable`, or `folder_empty`: nothing is there although documents
                are known, which looks like a disk that is not mounted; `folder_replaced`: only other files are.
                Nothing is changed, unless the job says that it may be so.
            LeaseLostError: when the job is no longer this worker's.
        """
        collection_id = int(job.payload["collection_id"])
        row = self._database.read(lambda session: collections.find_collection(session, collection_id))
        if row is None or row.root is None:
            raise LeaseLostError
        applying = Applying(self._database, self._index, self._clock, job, collection_id)
        folders = [str(folder) for folder in job.payload.get("folders") or ()]
        part = self._begin_part(row, applying, folders) if folders else None
        if part is not None:
            self._take_all(part)
            if applying.result.moving or not part.vanished.left():
                applying.remove(part.secret)
                return self._result(part)
            applying.result.moving = 0
        look = self._begin(row, applying, may_be_empty=bool(job.payload.get("may_be_empty")))
        self._take_all(look)
        self._remove(look)
        self._skipped[collection_id] = dict(sorted(look.skipped.items()))
        return self._result(look)

    def finish(self, job: jobs.ClaimedJob, result: ScanResult, error: str | None) -> None:
        """Stores the outcome for the page."""

        def work(session: Session) -> None:
            now = self._clock.now()
            if scan_jobs.finish_scan(session, job, asdict(result), error, now) and error is None:
                collections.mark_scanned(session, int(job.payload["collection_id"]), result.changes(), now)

        self._database.write(work)

    def _begin(self, row: CollectionRow, applying: Applying, *, may_be_empty: bool) -> _Look:
        """A look at the whole folder."""
        patterns = _patterns_of(row)
        found = self._walk(row, patterns)
        if self._walked is not None and row.kind == "folder":
            self._walked(row.id, Path(row.root or ""), found, patterns)
        known = self._database.read(lambda session: intake.list_files(session, row.id))
        is_meant = (may_be_empty and not found.unread) or found.skipped["excluded"] > 0
        if not found.files and not is_meant and any(not file.is_removed for file in known):
            raise FolderError("folder_empty", params={"path": row.root})
        passed = self._passed.get(row.id, {})
        self._passed[row.id] = {path: seen for path, seen in passed.items() if path in found.files}
        seen = self._seen.get(row.id, {})
        self._seen[row.id] = {path: changed for path, changed in seen.items() if path in found.files}
        look = self._look(row, applying, patterns, found, known)
        look.is_doubted = row.kind == "folder" and not is_meant and _is_unlike(look)
        return look

    def _begin_part(self, row: CollectionRow, applying: Applying, folders: list[str]) -> _Look | None:
        """A look at what lies in some directories. None when that is not enough: one of them is gone, holds one that
        no look at the whole has seen, or is emptied, or nothing in it is what it was."""
        patterns = _patterns_of(row)
        inside = self._inside.get(row.id)
        if inside is None or not inside.issuperset(folders):
            return None
        found = self._walk(row, patterns, folders)
        if found.unread or not inside.issuperset(found.inner):
            return None
        known = self._database.read(lambda session: intake.list_files_in(session, row.id, folders))
        look = self._look(row, applying, patterns, found, known)
        return look if found.files and not _is_unlike(look) else None

    def _look(
        self, row: CollectionRow, applying: Applying, patterns: Patterns, found: Walk, known: list[intake.KnownFile]
    ) -> _Look:
        root = Path(row.root or "")
        passed = self._passed.setdefault(row.id, {})
        gone = (file for file in known if file.path not in found.files and not is_unread(file, found))
        return _Look(
            row=row,
            patterns=patterns,
            found=found,
            known={file.path: file for file in known},
            seen=self._seen.setdefault(row.id, {}),
            reader=FileReader(root, self._settings.upload_max_mb * 1024 * 1024, passed),
            vanished=Vanished(gone),
            applying=applying,
            skipped=Counter(found.skipped),
            secret=[],
            findings=Findings(),
            is_doubted=False,
        )

    def _result(self, look: _Look) -> ScanResult:
        result = look.applying.result
        same = sum(_is_unchanged(look, file) for file in look.found.files.values())
        look.seen.update((path, file.changed_ns) for path, file in look.found.files.items())
        result.unchanged = same + look.applying.touched
        result.skipped = self._skipped.get(look.row.id, {})
        return result

    def _take_all(self, look: _Look) -> None:
        """Reads whatever is not as it was; what is just being written gets one more look after a rest."""
        pending = [file for file in look.found.files.values() if not _is_unchanged(look, file)]
        fresh = self._take(look, pending)
        if fresh:
            self._rest()
            again = [file for file in map(look.reader.again, fresh) if file is not None]
            look.applying.result.moving = len(self._take(look, again))
        if look.is_doubted and not look.applying.result.moving:
            raise FolderError("folder_replaced", params={"path": look.row.root})

    def _walk(self, row: CollectionRow, patterns: Patterns, within: list[str] | None = None) -> Walk:
        only = SAMPLE_ONLY if row.kind == "sample" else ()
        root = Path(row.root or "")
        found = walk(root, only=only, without=self._settings.data_dir, patterns=patterns, within=within)
        if within is None:
            self._inside[row.id] = set(found.folders)
        return found

    def _take(self, look: _Look, files: list[FoundFile]) -> list[FoundFile]:
        """Reads files and writes what they are as it goes, unless that is in doubt; returns those that are being
        written just now."""
        moving: list[FoundFile] = []
        written = self._clock.monotonic()
        for file in files:
            if not self._yielding.give_way():
                raise LeaseLostError
            row = look.known.get(file.path)
            looked = look.reader.look(file, is_known=row is not None)
            if isinstance(looked, Moving):
                moving.append(file)
            elif isinstance(looked, Hashed):
                _sort_in(look, row, looked)
            else:
                look.skipped[looked] += 1
                if row is not None and looked == "secret":
                    look.secret.append(row)
            most = APPLY_BESIDE_TURNS if self._yielding.has_waited else APPLY_AT_ONCE
            if len(look.findings) >= most or self._clock.monotonic() - written > WRITE_EVERY_S:
                _write(look)
                written = self._clock.monotonic()
        _write(look)
        return moving

    def _remove(self, look: _Look) -> None:
        """Takes out what is gone, unless something is on the move: a file may be on its way to its new name."""
        gone = [] if look.is_doubted else look.vanished.left()
        if gone and not look.applying.result.moving:
            self._rest()
            same = self._walk(look.row, look.patterns)
            if same.files.keys() != look.found.files.keys() or same.unread != look.found.unread:
                look.applying.result.moving += len(gone)
                gone = []
        elif gone:
            gone = []
        look.applying.remove([*gone, *look.secret])

    def _rest(self) -> None:
        if not self._yielding.rest(REST_S):
            raise LeaseLostError


def _patterns_of(row: CollectionRow) -> Patterns:
    return SAMPLE_PATTERNS if row.kind == "sample" else Patterns(row.include, row.exclude)


def _write(look: _Look) -> None:
    if not look.is_doubted:
        look.applying.write(look.findings)
        look.findings = Findings()


def _is_unlike(look: _Look) -> bool:
    """Whether several documents are known and the file of none is where it was."""
    living = [path for path, file in look.known.items() if not file.is_removed]
    return len(living) >= DOUBT_FROM and not any(path in look.found.files for path in living)


def _sort_in(look: _Look, row: intake.KnownFile | None, hashed: Hashed) -> None:
    found = look.findings
    if row is None:
        was = look.vanished.take(hashed)
        look.is_doubted = look.is_doubted and was is None
        if was is None:
            found.fresh.append(hashed)
        else:
            found.renamed.append((was, hashed))
    elif row.sha256 == hashed.sha256 and not row.was_missed:
        found.touched.append((row, hashed))
    else:
        found.changed.append((row, hashed))


def _is_unchanged(look: _Look, file: FoundFile) -> bool:
    row = look.known.get(file.path)
    if row is None or row.was_missed or (row.bytes, row.mtime_ns) != (file.bytes, file.mtime_ns):
        return False
    return look.seen.get(file.path, file.changed_ns) == file.changed_ns
