"""Reading a watched folder: which files lie in it, and opening one of them.

Every directory is opened relative to its parent without following links, so nothing outside the root can be reached,
whatever is swapped meanwhile. Owns no database and no decision about what changed: `app.ingest.scan` compares.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from app.errors import AppError, InvalidInputError
from app.ingest.errors import IngestError
from app.ingest.filenames import SkipReason, skip_reason
from app.ingest.patterns import Patterns

MAX_DEPTH = 64
_OPEN_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FORBIDDEN_ROOTS = ("/proc", "/sys", "/dev", "/run")
_EVERYTHING = Patterns()


class FolderError(AppError):
    """A watched folder cannot be read as a whole: `folder_missing`, `folder_unreadable`, `folder_empty`,
    `folder_replaced`."""

    status = 422
    default_code = "folder_missing"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file; `path` is relative to the root, with `/`. `changed_ns` is when its content, name or rights last
    changed, which programs can't set (`st_ctime_ns`)."""

    path: str
    bytes: int
    mtime_ns: int
    changed_ns: int


@dataclass(slots=True)
class Walk:
    """What lies in a folder. `folders` are the directories that were entered (relative, with a final `/`; the root is
    "") by device and inode, `inner` those that were seen but not entered. `unread` could not be listed: nothing is
    known of what is below them."""

    files: dict[str, FoundFile] = field(default_factory=dict[str, FoundFile])
    folders: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    inner: list[str] = field(default_factory=list[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    unread: list[str] = field(default_factory=list[str])
    entries: int = 0

    def skip(self, reason: SkipReason) -> None:
        """Counts an entry that is passed over."""
        self.skipped[reason] += 1


def check_root(path: str, data_dir: Path) -> Path:
    """The real path of a folder that may be watched.

    Raises:
        InvalidInputError: `folder_not_absolute`, `folder_forbidden` (a system's own, or Docent's).
        FolderError: `folder_missing` or `folder_unreadable`.
    """
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidInputError("folder_not_absolute")
    root = Path(os.path.realpath(path))
    data = Path(os.path.realpath(data_dir))
    is_system = root == Path("/") or any(root.is_relative_to(forbidden) for forbidden in _FORBIDDEN_ROOTS)
    if is_system or root.is_relative_to(data):
        raise InvalidInputError("folder_forbidden")
    if not root.is_dir():
        raise FolderError(params={"path": path})
    if not os.access(root, os.R_OK | os.X_OK):
        raise FolderError("folder_unreadable", params={"path": path})
    return root


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a walk stays within."""

    device: int
    hidden: tuple[int, int] | None
    patterns: Patterns


def walk(
    root: Path,
    *,
    only: tuple[str, ...] = (),
    without: Path | None = None,
    patterns: Patterns = _EVERYTHING,
    within: Iterable[str] | None = None,
) -> Walk:
    """All files under `root` that may be documents.

    `only` limits the root's own entries to these names; the directory `without` (Docent's data) is left out, and so is
    what `patterns` leave out. `within` names the directories to list (as `Walk.folders` does), and no others: those
    below them are found in `inner`.

    Raises:
        FolderError: when the root is not there or cannot be listed.
    """
    found = Walk()
    try:
        top = os.open(root, _OPEN_DIR)
    except OSError as error:
        code = "folder_unreadable" if error.errno in (errno.EACCES, errno.EPERM) else "folder_missing"
        raise FolderError(code, params={"path": str(root)}) from error
    try:
        limits = _Limits(os.fstat(top).st_dev, _identity(without), patterns)
        pending = [("", 0)] if within is None else [(folder, MAX_DEPTH) for folder in within]
        while pending:
            folder, depth = pending.pop()
            for name, is_dir in _list(top, folder, found, limits):
                if folder == "" and only and name not in only:
                    continue
                if is_dir and depth < MAX_DEPTH:
                    pending.append((f"{folder}{name}/", depth + 1))
                elif is_dir and within is None:
                    found.skip("deep")
                elif is_dir:
                    found.inner.append(f"{folder}{name}/")
    finally:
        os.close(top)
    if only:
        found.files = {path: file for path, file in found.files.items() if path.split("/", 1)[0] in only}
    return found


@contextmanager
def open_file(root: Path, path: str) -> Generator[BinaryIO]:
    """The file at `root/path`, opened without following any link.

    Raises:
        IngestError: `vanished` (gone, or no longer a regular file) or `unreadable`.
    """
    opened: list[int] = []
    try:
        opened.append(os.open(root, _OPEN_DIR))
        *folders, name = path.split("/")
        for folder in folders:
            opened.append(os.open(folder, _OPEN_DIR, dir_fd=opened[-1]))
        handle = os.open(name, _OPEN_FILE, dir_fd=opened[-1])
    except OSError as error:
        raise IngestError("unreadable" if error.errno in (errno.EACCES, errno.EPERM) else "vanished") from error
    finally:
        for directory in opened:
            os.close(directory)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IngestError("vanished")
        yield file


def _list(top: int, folder: str, found: Walk, limits: _Limits) -> Iterator[tuple[str, bool]]:
    """Yields (name, is_dir) of what is to be entered, and puts files into `found`."""
    try:
        handle = _open_below(top, folder)
    except OSError:
        found.unread.append(folder)
        found.skip("unreadable")
        return
    try:
        here = os.fstat(handle)
        found.folders[folder] = here.st_dev, here.st_ino
        for name in sorted(os.listdir(handle)):
            found.entries += 1
            info = _stat(handle, name, found)
            if info is None:
                continue
            is_dir = stat.S_ISDIR(info.st_mode)
            reason = _reason(folder + name, info, limits)
            if is_dir and (info.st_dev, info.st_ino) == limits.hidden:
                continue
            if reason is not None:
                found.skip(reason)
            elif is_dir:
                yield name, True
            else:
                path = folder + name
                found.files[path] = FoundFile(path, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    except OSError:
        found.unread.append(folder)
        found.skip("unreadable")
    finally:
        os.close(handle)


def _open_below(top: int, folder: str) -> int:
    handle = os.dup(top)
    for part in folder.split("/")[:-1]:
        try:
            below = os.open(part, _OPEN_DIR, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def _stat(handle: int, name: str, found: Walk) -> os.stat_result | None:
    try:
        name.encode()
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    except UnicodeEncodeError:
        found.skip("name")
    except OSError:
        found.skip("unreadable")
    return None


def _reason(path: str, info: os.stat_result, limits: _Limits) -> SkipReason | None:
    if stat.S_ISLNK(info.st_mode):
        return "link"
    is_dir = stat.S_ISDIR(info.st_mode)
    if not is_dir and not stat.S_ISREG(info.st_mode):
        return "special"
    if info.st_dev != limits.device:
        return "mount"
    reason = skip_reason(path.rpartition("/")[2], is_dir=is_dir)
    if reason is None and not limits.patterns.are_empty and limits.patterns.leave_out(path, is_dir=is_dir):
        return "excluded"
    return reason


def _identity(folder: Path | None) -> tuple[int, int] | None:
    if folder is None:
        return None
    try:
        info = folder.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino
