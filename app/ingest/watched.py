"""Watched folders and the sample, as collections: add, remove, ask for a scan.

Owns which folders are collections; comparing one with the database is `app.ingest.scan`'s. Folders named in the
environment (`WATCH_DIRS`) are made at start and cannot be removed in the page.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.clock import Clock
from app.errors import AppError, ConflictError, InvalidInputError
from app.ingest.folders import check_root, walk
from app.ingest.patterns import Patterns
from app.logs import kv
from app.settings import ROOT, Settings
from app.store import collections, intake, jobs, removals, scan_jobs
from app.store.engine import Database, Session
from app.store.models.setup import LOCAL_USER_ID

SAMPLE_NAME = "Docent's own manual"
SAMPLE_ONLY = ("README.md", "docs")
"""What of the project's folder is looked at for the manual."""
SAMPLE_PATTERNS = Patterns(("/README.md", "docs/configuration.md", "docs/openai-api.md", "docs/operating.md"))
"""What of that is the manual: what whoever uses or runs Docent reads. The rest is for its developers."""

_log = logging.getLogger("app.ingest")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PatternsPreview:
    """What patterns would do: files wanted, documents that would go, files that would come."""

    files: int
    going: int
    coming: int


class WatchedFolders:
    """The operations on collections that have a folder.

    Args:
        wake: Tells the worker that there is something to do; may do nothing.
    """

    def __init__(self, database: Database, settings: Settings, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._wake = wake

    def add_folder(self, user_id: int, path: str) -> int:
        """Makes a folder a collection, asks for its first scan, and returns its id.

        Raises:
            InvalidInputError: `folder_not_absolute`, `folder_forbidden`.
            FolderError: `folder_missing`, `folder_unreadable`.
            ConflictError: `folder_known`: it, or a folder around or inside it, is watched already; `folder_leaving`: it
                is just being removed.
        """
        root = check_root(path.strip(), self._settings.data_dir)

        def work(session: Session) -> int:
            for number, known in collections.list_roots(session, user_id):
                if root == Path(known) and collections.is_removing(session, number):
                    raise ConflictError("folder_leaving", params={"path": known})
                if root.is_relative_to(known) or Path(known).is_relative_to(root):
                    raise ConflictError("folder_known", params={"path": known})
            return self._create(session, user_id, root.name, "folder", root)

        return self._done(work)

    def add_sample(self, user_id: int) -> int:
        """Makes Docent's own manual a collection, once, and returns its id.

        Raises:
            ConflictError: `folder_leaving`: it is just being removed.
        """

        def work(session: Session) -> int:
            known = collections.find_by_root(session, user_id, str(ROOT))
            if known is not None and collections.is_removing(session, known):
                raise ConflictError("folder_leaving", params={"path": SAMPLE_NAME})
            return known if known is not None else self._create(session, user_id, SAMPLE_NAME, "sample", ROOT)

        return self._done(work)

    def request_scan(self, user_id: int, collection_id: int, *, may_be_empty: bool = False) -> None:
        """Asks for a scan now. With `may_be_empty` a folder in which nothing is left loses its documents; without, that
        is taken for a disk that is not mounted.

        Raises:
            NotFoundError: when the collection is not the user's to change.
            InvalidInputError: `collection_without_folder`.
        """

        def work(session: Session) -> None:
            row = collections.get_collection(session, user_id, collection_id, to_change=True)
            if row.root is None:
                raise InvalidInputError("collection_without_folder")
            jobs.enqueue(session, [scan_jobs.scan_job(collection_id, may_be_empty=may_be_empty)], self._clock.now())

        self._done(work)

    def request_all_scans(self) -> None:
        """Asks for a scan of every folder: at start and every `WATCH_RESCAN_S`."""

        def work(session: Session) -> None:
            due = [scan_jobs.scan_job(row.id) for row in collections.list_scanned(session)]
            jobs.enqueue(session, due, self._clock.now())

        self._done(work)

    def remove(self, user_id: int, collection_id: int) -> None:
        """Takes a folder or the sample out of the library with its documents; nothing on disk is touched. Nobody sees
        them any more when this returns; the worker takes them out one after the other.

        Raises:
            NotFoundError: when the collection is not the user's to change.
            ConflictError: `collection_is_library`, or `folder_locked` for one that the environment names.
        """

        def stop(session: Session) -> None:
            row = collections.get_collection(session, user_id, collection_id, to_change=True)
            if row.kind == "library":
                raise ConflictError("collection_is_library")
            if self.is_locked(row):
                raise ConflictError("folder_locked", setting="WATCH_DIRS")
            removals.begin(session, row, self._clock.now())

        self._done(stop)

    def preview(self, user_id: int, collection_id: int, patterns: Patterns) -> PatternsPreview:
        """What patterns would do, by the names that lie in the folder now. Walks it: blocks.

        Raises:
            NotFoundError: when the collection is not the user's to change.
            InvalidInputError: `collection_without_folder`.
            FolderError: when the folder can't be read.
        """
        row, known = self._database.read(lambda session: self._known(session, user_id, collection_id))
        found = walk(Path(row.root or ""), without=self._settings.data_dir, patterns=patterns)
        paths = {file.path for file in known}
        going = sum(not file.is_removed and file.path not in found.files for file in known)
        return PatternsPreview(len(found.files), going, sum(path not in paths for path in found.files))

    def set_patterns(self, user_id: int, collection_id: int, patterns: Patterns) -> None:
        """Stores which files of a folder are wanted, and asks for a scan.

        Raises:
            NotFoundError: when the collection is not the user's to change.
            InvalidInputError: `collection_without_folder`.
        """

        def work(session: Session) -> None:
            self._known(session, user_id, collection_id)
            collections.set_patterns(session, collection_id, patterns.include, patterns.exclude)
            # One that is going on has the old ones: it must not be taken for this one.
            jobs.drop_key(session, scan_jobs.scan_key(collection_id))
            jobs.enqueue(session, [scan_jobs.scan_job(collection_id)], self._clock.now())

        self._done(work)

    def _known(
        self, session: Session, user_id: int, collection_id: int
    ) -> tuple[collections.CollectionRow, list[intake.KnownFile]]:
        row = collections.get_collection(session, user_id, collection_id, to_change=True)
        if row.kind != "folder":
            raise InvalidInputError("collection_without_folder")
        return row, intake.list_files(session, collection_id)

    def is_locked(self, row: collections.CollectionRow) -> bool:
        """Whether the environment names this folder, so that the page may not remove it."""
        if row.kind != "folder" or row.root is None:
            return False
        return Path(row.root) in {path.resolve() for path in self._settings.watch_dirs}

    def ensure_environment(self) -> None:
        """Makes a collection of each folder in `WATCH_DIRS`; one that cannot be watched is warned about."""
        for path in self._settings.watch_dirs:
            try:
                root = check_root(str(path), self._settings.data_dir)
            except AppError as error:
                _log.warning(kv("folder_refused", path=path, reason=error.code))
                continue

            def work(session: Session, root: Path = root) -> None:
                if collections.find_by_root(session, LOCAL_USER_ID, str(root)) is None:
                    self._create(session, LOCAL_USER_ID, root.name, "folder", root)

            self._database.write(work)

    def _create(self, session: Session, user_id: int, name: str, kind: collections.CollectionKind, root: Path) -> int:
        now = self._clock.now()
        collection_id = collections.create_collection(session, user_id, name, kind, str(root), now)
        jobs.enqueue(session, [scan_jobs.scan_job(collection_id)], now)
        return collection_id

    def _done(self, work: Callable[[Session], T]) -> T:
        result = self._database.write(work)
        self._wake()
        return result
