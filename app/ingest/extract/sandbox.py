"""What the extraction child takes away from itself before it opens a stranger's file.

Called by `child` once, after its imports. Memory, CPU time, file writes, new processes and sockets are limited for the
whole process; where the kernel lets an ordinary user do it, the network is gone for native code too.
"""

import ctypes
import os
import resource
import sys
from typing import Any

_REFUSED = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn"}
    | {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_NICENESS = 5
"""Reading files may take longer; a streaming answer may not."""


def harden(memory_bytes: int) -> None:  # pragma: no cover - in the child only
    """Applies every limit but CPU time. There is no way back."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    lower(resource.RLIMIT_AS, memory_bytes)
    leave_network()
    sys.dont_write_bytecode = True
    sys.addaudithook(refuse)


def allow_cpu(seconds: float) -> None:  # pragma: no cover - in the child only
    """Grants CPU time from now on; the kernel ends the process when it is used up."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def leave_network() -> bool:  # pragma: no cover - in the child only
    """Moves into a network namespace with nothing in it; False where the kernel or a container forbids that.

    Root does without a user namespace: in one it could no longer read the files of others.
    """
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    try:
        return ctypes.CDLL(None, use_errno=True).unshare(flags) == 0
    except (OSError, AttributeError):
        return False


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook: sockets, processes and writes end in PermissionError.

    Raises:
        PermissionError: for what no parser has to do.
    """
    if event in _REFUSED or event.startswith("socket."):
        raise PermissionError(f"refused in the extraction child: {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
        raise PermissionError("refused in the extraction child: writing")


def lower(limit: int, value: int) -> None:  # pragma: no cover - in the child only
    """Sets a limit for good, never above what already holds."""
    _, hard = resource.getrlimit(limit)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
