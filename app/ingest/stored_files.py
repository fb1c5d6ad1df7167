"""The data folder's files: uploads by content hash (`files/ab/abcdef…`), temporary files, the lock of living processes.

Owns names on disk and nothing of the database. A file is placed and unlinked inside the write transaction that adds or
checks its row (one writer, so neither can overtake the other); what a crash leaves over is swept at start.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from app.errors import AppError

FREE_FLOOR = 200 * 1024 * 1024
"""Bytes that stay free on the data folder's disk: the database must be able to go on writing."""

_SHA = re.compile(r"[0-9a-f]{64}")


class NoSpaceError(AppError):
    """The data folder's disk has no room for what is coming."""

    status = 507
    default_code = "disk_full"


@dataclass(frozen=True, slots=True)
class TempFile:
    """A file that has arrived whole but has no row yet."""

    path: Path
    sha256: str
    bytes: int


class Incoming:
    """A temporary file that is hashed while it is written; gone unless `done` was called."""

    def __init__(self, folder: Path) -> None:
        handle, name = tempfile.mkstemp(dir=folder, prefix="in-")
        self._file: BinaryIO = os.fdopen(handle, "wb")
        self._path = Path(name)
        self._sha = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Appends.

        Raises:
            OSError: when the disk refuses.
        """
        self._file.write(data)
        self._sha.update(data)
        self.bytes += len(data)

    def done(self) -> TempFile:
        """Closes the file and keeps it."""
        self._file.close()
        return TempFile(self._path, self._sha.hexdigest(), self.bytes)

    def drop(self) -> None:
        """Closes and deletes the file."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


class StoredFiles:
    """The files under `data_dir`. Blocking; safe to use from several threads."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._files = data_dir / "files"
        self._temp = data_dir / "tmp"
        for folder in (self._files, self._temp):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path_of(self, sha256: str) -> Path:
        """Where content of that hash lies, whether or not it is there."""
        return self._files / sha256[:2] / sha256

    def begin(self) -> Incoming:
        """A new temporary file."""
        return Incoming(self._temp)

    @contextlib.contextmanager
    def copied(self, source: BinaryIO, limit: int) -> Generator[TempFile | None]:
        """A private copy of `source`, deleted at the end; None when it is longer than `limit` bytes."""
        incoming = self.begin()
        try:
            while data := source.read(1024 * 1024):
                if incoming.bytes + len(data) > limit:
                    yield None
                    return
                incoming.write(data)
            yield incoming.done()
        finally:
            incoming.drop()

    def place(self, temp: TempFile) -> None:
        """Gives a temporary file its final name; content that is there already stays."""
        target = self.path_of(temp.sha256)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        os.replace(temp.path, target)

    def remove(self, sha256: str) -> None:
        """Deletes stored content."""
        self.path_of(sha256).unlink(missing_ok=True)

    def shas(self) -> set[str]:
        """The hashes of all stored content."""
        return {path.name for path in self._files.glob("*/*") if _SHA.fullmatch(path.name)}

    def check_space(self, coming: int) -> None:
        """Raises:
        NoSpaceError: when `coming` bytes would take the disk below its floor.
        """
        free = shutil.disk_usage(self.data_dir).free
        if free - coming < FREE_FLOOR:
            raise NoSpaceError(params={"coming": coming, "free": free})

    def sweep(self, used: set[str]) -> int:
        """Deletes every temporary file and all content no row needs; returns how many. Only while nothing arrives."""
        stale = [path for path in self._temp.iterdir() if path.is_file()]
        for folder in self._files.iterdir():
            if folder.is_dir():
                stale += [path for path in folder.iterdir() if _SHA.fullmatch(path.name) and path.name not in used]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


class ProcessLock:
    """Held, shared, by every process that works on the data folder; `is_first` tells whether no other one did.

    Whoever is first may sweep: what lies there half-done belongs to nobody alive.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = open(data_dir / "worker.lock", "w")  # noqa: SIM115 - held until close
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_first = True
        except BlockingIOError:
            fcntl.flock(self._file, fcntl.LOCK_SH)
            self.is_first = False

    def share(self) -> None:
        """Lets others in, once the sweep is done."""
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def close(self) -> None:
        """Gives the lock up."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


class OneHolder:
    """What one process at a time may do: a lock on a file, given up by its end, however it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def take(self) -> bool:
        """Whether it is this holder's, now or already."""
        if self._file is None:
            file = open(self._path, "wb")  # noqa: SIM115 - held until close
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._file = file
        return True

    def close(self) -> None:
        """Gives it up."""
        if self._file is not None:
            self._file.close()
            self._file = None
