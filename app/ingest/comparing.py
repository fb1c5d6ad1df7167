"""Looking into a folder's files: is it a document, does it rest, what is its hash; and which vanished row it was.

Owns that judgement and nothing of the database. `app.ingest.scan` asks file by file, `app.ingest.commands` for a
file's first bytes. A file is read when its size and time rest: one that grows while it is read is left for the next
look.
"""

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from app.ingest.errors import IngestError
from app.ingest.extract.decode import is_binary
from app.ingest.filenames import SkipReason
from app.ingest.folders import FoundFile, Walk, open_file
from app.store.intake import KnownFile

HEAD_BYTES = 8192
REST_S = 0.15
"""How long a file must have been left alone before it is read."""

_OFFICE = frozenset({".doc", ".docx", ".docm", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".epub"})
_KEYS = (b"PRIVATE KEY-----", b"PRIVATE KEY BLOCK-----", b"PuTTY-User-Key-File-", b"AGE-SECRET-KEY-1")
_PASSWORD_STORE = b"\x03\xd9\xa2\x9a"
"""How a KeePass database begins, whatever it is called."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file with its content's hash; "" for one over the size limit, which is not read."""

    file: FoundFile
    sha256: str


@dataclass(frozen=True, slots=True)
class Moving:
    """A file that is being written just now."""


Looked = Hashed | Moving | SkipReason


class FileReader:
    """Hashes files of one folder.

    Args:
        passed: What was passed over at an earlier look, by path: (bytes, mtime_ns, reason); kept up to date, so that
            such a file is opened again only once it changed.
    """

    def __init__(self, root: Path, max_bytes: int, passed: dict[str, tuple[int, int, SkipReason]]) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._passed = passed

    def look(self, file: FoundFile, *, is_known: bool) -> Looked:
        """What a file is. One that is known was a document before and stays one, unless it holds a key now."""
        known = self._passed.get(file.path)
        if known is not None and not is_known and known[:2] == (file.bytes, file.mtime_ns):
            return known[2]
        if file.bytes > self._max_bytes:
            return Hashed(file, "")
        if is_fresh(file):
            return Moving()
        try:
            looked = self._hash(file, is_known=is_known)
        except (IngestError, OSError):
            return "unreadable"
        if isinstance(looked, str):
            self._passed[file.path] = (file.bytes, file.mtime_ns, looked)
        else:
            self._passed.pop(file.path, None)
        return looked

    def again(self, file: FoundFile) -> FoundFile | None:
        """The file as it is now; None when it is gone."""
        try:
            with open_file(self._root, file.path) as stream:
                return _found(file.path, os.fstat(stream.fileno()))
        except (IngestError, OSError):
            return None

    def _hash(self, file: FoundFile, *, is_known: bool) -> Looked:
        with open_file(self._root, file.path) as stream:
            before = _found(file.path, os.fstat(stream.fileno()))
            head = stream.read(HEAD_BYTES)
            reason = no_document(head, file.path)
            if reason == "secret" or (reason is not None and not is_known):
                return reason
            sha = hashlib.sha256(head)
            while data := stream.read(1024 * 1024):
                sha.update(data)
            after = _found(file.path, os.fstat(stream.fileno()))
        return Hashed(after, sha.hexdigest()) if after == before else Moving()


class Vanished:
    """Rows whose path is gone, for files of the same content to take over: the same document under a new name."""

    def __init__(self, rows: Iterable[KnownFile]) -> None:
        self._left = {row.id: row for row in rows}
        self._by_sha: defaultdict[str, list[KnownFile]] = defaultdict(list)
        for row in self._left.values():
            if row.sha256:
                self._by_sha[row.sha256].append(row)

    def take(self, hashed: Hashed) -> KnownFile | None:
        """The row that this new file was, if one was; of several the one that had the same name."""
        rows = self._by_sha.get(hashed.sha256)
        if not rows:
            return None
        name = PurePosixPath(hashed.file.path).name
        best = next((row for row in rows if PurePosixPath(row.path).name == name), rows[0])
        rows.remove(best)
        del self._left[best.id]
        return best

    def left(self) -> list[KnownFile]:
        """Those that nothing took over."""
        return list(self._left.values())


def is_fresh(file: FoundFile, now: Callable[[], float] = time.time) -> bool:
    """Whether it was written within the last `REST_S`, by the clock that writes files' times. A time that lies in the
    future says nothing."""
    return 0 <= now() - file.mtime_ns / 1e9 < REST_S


def is_unread(file: KnownFile, found: Walk) -> bool:
    """Whether it lies below a directory that could not be listed, so that nothing is known of it."""
    return any(file.path.startswith(folder) for folder in found.unread)


def no_document(head: bytes, path: str) -> SkipReason | None:
    """Why a folder's file is none, by its first `HEAD_BYTES` bytes: a key, or binary of no known format."""
    if any(key in head for key in _KEYS) or head.startswith(_PASSWORD_STORE):
        return "secret"
    is_office = PurePosixPath(path.lower()).suffix in _OFFICE
    is_pdf = b"%PDF-" in head[:1024]
    return "unsupported" if is_binary(head) and not is_office and not is_pdf else None


def _found(path: str, info: os.stat_result) -> FoundFile:
    return FoundFile(path, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
