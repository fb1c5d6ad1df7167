"""Being told by the system that something changed in a folder: one `FolderWatch` for each, on a thread of its own.

Owns the `watchfiles` package and what is known of file systems. Directories are watched one by one, just those that a
walk entered, never their links and never what lies below `.git` or `node_modules`. What a change means is
`app.ingest.live`'s.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from watchfiles._rust_notify import (  # pyright: ignore[reportPrivateUsage] - its documented lowest layer
    RustNotify,
    WatchfilesRustInternalError,
)

QUIET_MS = 100
"""How long nothing may have changed before a change is told."""

LONGEST_MS = 1_000
"""How long changes that go on are held back."""

REMOTE = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "virtiofs", "vboxsf"),
        *("prl_fs", "ncpfs", "davfs", "drvfs", "fuse.sshfs", "fuse.rclone", "fuse.glusterfs", "fuse.s3fs"),
    }
)
"""File systems whose changes another machine may make, of which nobody here is told."""


class WatchRefusedError(Exception):
    """The system does not watch (any more) folders."""


class Notifier(Protocol):
    """What is needed of `RustNotify`."""

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> set[tuple[int, str]] | str:
        """Waits for changes, as (kind, path); a word where there are none."""
        ...

    def close(self) -> None:
        """Ends watching."""
        ...


Notifying = Callable[[Sequence[str]], Notifier]


def open_notifier(folders: Sequence[str]) -> Notifier:
    """Watches just these directories.

    Raises:
        WatchRefusedError: when the system refuses: too many directories or watches.
    """
    try:
        return RustNotify(list(folders), False, False, 0, False, True)
    except FileNotFoundError as error:
        raise WatchRefusedError("gone") from error
    except (OSError, WatchfilesRustInternalError) as error:
        raise WatchRefusedError(_line(error)) from error


class FolderWatch:
    """Calls `changed` with the paths of each burst of changes, from its own thread, until `close`.

    `lost` is called once with this watch where it broke instead, and tells of nothing any more: a name that is not
    UTF-8 ends `RustNotify` for good. Something changed then, nobody knows where.
    """

    def __init__(
        self,
        notifier: Notifier,
        changed: Callable[[set[str]], None],
        lost: Callable[["FolderWatch", str], None],
        name: str,
    ) -> None:
        self._notifier = notifier
        self._changed = changed
        self._lost = lost
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"docent-watch-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Begins its end, without waiting for it."""
        self._closing.set()

    def join(self) -> None:
        """Waits for its end, `QUIET_MS` or so."""
        self._thread.join(2)

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                told = self._notifier.watch(LONGEST_MS, QUIET_MS, 0, self._closing)
                if isinstance(told, str):
                    return
                self._changed({path for _, path in told})
        except (OSError, WatchfilesRustInternalError) as error:
            if not self._closing.is_set():
                self._lost(self, _line(error))
        finally:
            self._notifier.close()


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def is_remote(root: Path, mounts: str | None = None) -> bool:
    """Whether a folder lies on a file system that another machine may change. `mounts` is `/proc/self/mountinfo`."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
        except OSError:
            return False
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ")
        if root.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind in REMOTE
