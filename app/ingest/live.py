"""Watched folders in step with the disk: what is watched, when a scan is due, and what the folder's row says of it.

Owns that decision for every folder. Being told is `app.ingest.notify`'s, reckoning when a look is due `look_due`'s,
comparing `app.ingest.scan`'s: a change only makes a scan due, so nothing hangs on which changes the system tells.
Called by `app.ingest.folder_work`: `step` on one thread, the rest from any.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.clock import Clock
from app.ingest.filenames import skip_reason
from app.ingest.folders import Walk
from app.ingest.look_due import MOST_PARTS, LookDue
from app.ingest.notify import FolderWatch, Notifying, WatchRefusedError, is_remote
from app.ingest.patterns import Patterns
from app.logs import kv
from app.store import collections, jobs, scan_jobs
from app.store.collections import WatchState
from app.store.engine import Database, Session

LOOK_S = 1.0
"""How often it is asked which folders there are and whether each is the one it was."""

FIRST_S = 2.0
"""When a folder is scanned for its watch, should nobody else have asked for a scan."""

AGAIN_S = 0.4
"""When a file that is being written is looked at again."""

MANY = 2_000
"""Changes told at once after which some may have been lost: the system keeps 16,384."""

_log = logging.getLogger("app.ingest")


@dataclass(slots=True)
class _Folder:
    """A folder that is to be watched."""

    root: Path
    identity: tuple[int, int] | None = None
    watch: FolderWatch | None = None
    watched: dict[str, tuple[int, int]] | None = None
    """What the watch covers, as the walk saw it."""
    patterns: Patterns = field(default_factory=Patterns)
    state: WatchState | None = None
    due: LookDue = field(default_factory=LookDue)


class LiveFolders:
    """Watches folders and asks for their scans.

    Args:
        wake: Told that a scan was queued, or that a step is due.
    """

    def __init__(self, database: Database, clock: Clock, notifying: Notifying, wake: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._notifying = notifying
        self._wake = wake
        self._lock = threading.RLock()
        self._folders: dict[int, _Folder] = {}
        self._looked = float("-inf")
        self._closed = False

    def step(self) -> float:
        """Looks after every folder, queues the scans that are due; returns the seconds until the next step."""
        now = self._clock.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            self._look()
        with self._lock:
            taken = {number: folder.due.take(now) for number, folder in self._folders.items()}
        due = {number: parts for number, parts in taken.items() if parts is not None}
        if due:
            self._queue(due)
        with self._lock:
            soonest = [folder.due.soonest() for folder in self._folders.values()]
        waits = (when - self._clock.monotonic() for when in soonest if when is not None)
        return max(0.02, min([LOOK_S, *waits]))

    def walked(self, collection_id: int, root: Path, found: Walk, patterns: Patterns) -> None:
        """A scan saw these directories: they are what is watched from now on. Where they are not the same as before,
        another scan finds what changed before the watch was there."""
        with self._lock:
            if self._closed:
                return
            folder = self._folders.setdefault(collection_id, _Folder(root))
            folder.patterns = patterns
            if folder.watched == found.folders and folder.watch is not None:
                return
            self._close(folder)
            folder.watched = found.folders
            folder.identity = found.folders.get("")
            names = [str(folder.root / name) for name in found.folders]
            try:
                notifier = self._notifying(names)
            except WatchRefusedError as error:
                folder.due.cancel()
                self._state(collection_id, folder, "limit", reason=str(error))
                return
            folder.watch = FolderWatch(
                notifier,
                lambda paths: self._changed(collection_id, paths),
                lambda watch, reason: self._lost(collection_id, watch, reason),
                str(collection_id),
            )
            self._state(collection_id, folder, "remote" if is_remote(folder.root) else "watching")
            folder.due.ask(self._clock.monotonic())
        self._wake()

    def scanned(self, collection_id: int, seconds: float, parts: Sequence[str], *, moving: bool) -> None:
        """A scan of these directories (none: of all) took so long, and left something for the next look or not."""
        with self._lock:
            folder = self._folders.get(collection_id)
            if folder is None:
                return
            folder.due.spend(self._clock.monotonic(), seconds, is_part=bool(parts))
            if moving:
                self._make_due(folder, max(AGAIN_S, seconds), set(parts) or None)
        if moving:
            self._wake()

    def close(self) -> None:
        """Ends every watch. Blocks for a moment."""
        with self._lock:
            self._closed = True
            folders = list(self._folders.values())
            self._folders.clear()
        watches = [folder.watch for folder in folders if folder.watch is not None]
        for watch in watches:
            watch.close()
        for watch in watches:
            watch.join()

    def _look(self) -> None:
        wanted = dict(self._database.read(collections.list_watched))
        with self._lock:
            gone = [self._folders.pop(number) for number in list(self._folders) if number not in wanted]
            for number, root in wanted.items():
                if number not in self._folders:
                    # Its watch comes with the scan that the worker's start, or whoever added it, asked for.
                    self._folders[number] = _Folder(Path(root))
                    self._make_due(self._folders[number], FIRST_S)
            here = list(self._folders.items())
        for folder in gone:
            self._close(folder)
        for number, folder in here:
            self._check(number, folder)

    def _check(self, collection_id: int, folder: _Folder) -> None:
        """Notices a folder that went, came back, or is another one now (a disk that was mounted)."""
        identity = None
        with suppress(OSError):
            info = folder.root.stat()
            identity = info.st_dev, info.st_ino
        with self._lock:
            if identity is None:
                if folder.state != "missing":
                    self._close(folder)
                    folder.watched = folder.identity = None
                    self._state(collection_id, folder, "missing")
                    self._make_due(folder, 0)
            elif folder.state == "missing" or (folder.identity is not None and folder.identity != identity):
                self._close(folder)
                folder.watched, folder.identity, folder.state = None, identity, None
                self._make_due(folder, 0)

    def _changed(self, collection_id: int, paths: set[str]) -> None:
        with self._lock:
            folder = self._folders.get(collection_id)
            if folder is None:
                return
            telling = [path for path in paths if _is_of_interest(folder, path)]
            if not telling:
                return
            self._make_due(folder, 0, _parts(folder, telling) if len(paths) < MANY else None)
        self._wake()

    def _lost(self, collection_id: int, watch: FolderWatch, reason: str) -> None:
        """A watch broke: the next scan, of everything, brings another one. Not at once: what broke it may go on."""
        with self._lock:
            folder = self._folders.get(collection_id)
            if folder is None or folder.watch is not watch:
                return
            folder.watch = None
            self._make_due(folder, AGAIN_S)
        _log.info(kv("folder_watch", collection=collection_id, state="lost", reason=reason))
        self._wake()

    def _make_due(self, folder: _Folder, delay_s: float, parts: set[str] | None = None) -> None:
        folder.due.ask(self._clock.monotonic() + delay_s, parts)

    def _queue(self, due: dict[int, list[str]]) -> None:
        """Queues scans of these directories, none for the whole. One that is being made already may have passed what
        changed: then it is asked for again."""

        wanted = {number: scan_jobs.scan_job(number, folders=parts) for number, parts in due.items()}

        def is_possible(session: Session) -> bool:
            return bool(jobs.not_queued(session, list(wanted.values())))

        def work(session: Session) -> list[int]:
            now = self._clock.now()
            there = dict(collections.list_watched(session))
            return [n for n, job in wanted.items() if n in there and jobs.enqueue(session, [job], now)]

        # Asked again and again while a long scan goes on: the one writer has other things to do.
        queued = set(self._database.write(work)) if self._database.read(is_possible) else set[int]()
        with self._lock:
            for number, parts in due.items():
                folder = self._folders.get(number)
                if folder is not None and number not in queued:
                    self._make_due(folder, AGAIN_S, set(parts) or None)
        if queued:
            self._wake()

    def _state(self, collection_id: int, folder: _Folder, state: WatchState, reason: str | None = None) -> None:
        """Notes and says how changes become known, once for each time that this changes."""
        if folder.state == state:
            return
        folder.state = state
        self._database.write(lambda session: collections.set_watch(session, collection_id, state))
        level = logging.WARNING if state in ("limit", "missing") else logging.INFO
        count = len(folder.watched or ())
        _log.log(level, kv("folder_watch", collection=collection_id, state=state, folders=count, reason=reason))

    def _close(self, folder: _Folder) -> None:
        watch, folder.watch = folder.watch, None
        if watch is not None:
            watch.close()


def _parts(folder: _Folder, paths: Sequence[str]) -> set[str] | None:
    """The directories that these paths lie in, as the watch names them; None when one of them is a directory itself
    or lies where none was seen."""
    known = folder.watched or {}
    parts: set[str] = set()
    for path in paths:
        relative = Path(path).relative_to(folder.root).as_posix()
        parent, slash, _ = relative.rpartition("/")
        if f"{relative}/" in known or relative == "." or parent + slash not in known:
            return None
        parts.add(parent + slash)
    return parts if len(parts) <= MOST_PARTS else None


def _is_of_interest(folder: _Folder, path: str) -> bool:
    """Whether a change there may concern a document: neither hidden, nor a key, nor left out."""
    try:
        relative = Path(path).relative_to(folder.root)
    except ValueError:
        return False
    if any(skip_reason(part, is_dir=True) is not None for part in relative.parts):
        return False
    if not relative.parts:
        return True
    if skip_reason(relative.name, is_dir=False) is not None and not os.path.isdir(path):
        return False
    return not folder.patterns.excludes_below(relative.as_posix())
