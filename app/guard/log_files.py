"""The two files beside the loop guard's log: its key, and the lock that tells whether another process writes.

The key lies outside the database file, so that a copy of the database alone can't be compared with guesses. It is no
boundary against whoever holds the whole data folder.
"""

import fcntl
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from app.logs import kv

KEY_NAME = "guard.key"
KEY_BYTES = 32

_log = logging.getLogger(__name__)


def load_key(data_dir: Path) -> bytes:
    """The installation's key, made when there is none; processes that start at once agree on one.

    Without a usable file the guard goes on with a key of this process; then keys are not the same after a restart.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(data_dir / KEY_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return _read_or_make(file.fileno())
    except OSError as error:
        _log.warning(kv("guard_key_unusable", error=type(error).__name__))
        return secrets.token_bytes(KEY_BYTES)


def _read_or_make(descriptor: int) -> bytes:
    """Under the lock: what another process has made, or a new key; one that a crash cut short is made anew."""
    key = os.pread(descriptor, KEY_BYTES, 0)
    if len(key) < KEY_BYTES:
        key = secrets.token_bytes(KEY_BYTES)
        os.pwrite(descriptor, key, 0)
        os.fsync(descriptor)
    return key


class RunLock:
    """Held, shared, by every process that writes the log; blocks, so only a worker thread may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def try_alone(self) -> bool:
        """Whether no other process writes. Until `share`, none can begin to."""
        try:
            if self._file is None:
                self._file = open(self._path, "w", encoding="utf-8")  # noqa: SIM115 - held until close
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def share(self) -> None:
        """Lets others in."""
        if self._file is not None:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_SH)

    def close(self) -> None:
        """Gives the lock up."""
        if self._file is not None:
            self._file.close()
            self._file = None
