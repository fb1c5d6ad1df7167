"""A running extraction child and the pipes to it: start, send, receive before a deadline, end.

Called by `extractor`, which decides when. Owns no meaning of messages.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from app.ingest.extract.wire import HEADER_BYTES, frame, payload_size

ROOT = Path(__file__).resolve().parents[3]
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Nothing else is handed on: the settings' secrets stand in the environment."""
_READ = 1 << 20
_KILL_WAIT_S = 5


class ChildGone(Exception):
    """The child ended by itself; `code` as `Popen.returncode`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def kept_environment() -> dict[str, str]:
    """What a child that reads strangers' files is told of the environment."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return {**kept, "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2"}


class Child:
    """One child process. Not thread-safe, but for `interrupt`."""

    def __init__(self, memory_bytes: int, max_bytes: int, max_chars: int) -> None:
        options = {"memory_bytes": memory_bytes, "max_bytes": max_bytes, "max_chars": max_chars}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module, no user's words
            [sys.executable, "-m", "app.ingest.extract.child", orjson.dumps(options).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=kept_environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._poll = select.poll()
        self._poll.register(self._stdout.fileno(), select.POLLIN)
        self._buffer = bytearray()
        self.served = 0
        """Requests sent to this child."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message.

        Raises:
            ChildGone: the child has ended.
        """
        try:
            self._stdin.write(frame(message))
            self._stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise ChildGone(self._end()) from error
        self.served += 1

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next message; `deadline` on the monotonic clock.

        Raises:
            TimeoutError: nothing whole came in time; the child still runs.
            ChildGone: the child ended.
        """
        self._fill(HEADER_BYTES, deadline)
        size = HEADER_BYTES + payload_size(bytes(self._buffer[:HEADER_BYTES]))
        self._fill(size, deadline)
        payload = bytes(memoryview(self._buffer)[HEADER_BYTES:size])
        del self._buffer[:size]
        return orjson.loads(payload)

    def interrupt(self) -> None:
        """Ends the process and nothing else, so that another thread may call it while one receives."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process, reaps it and closes the pipes."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_WAIT_S)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()

    def _fill(self, size: int, deadline: float) -> None:
        while len(self._buffer) < size:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            if not self._poll.poll(min(remaining, 1.0) * 1000):
                continue
            try:
                data = os.read(self._stdout.fileno(), _READ)
            except BlockingIOError:
                continue
            except (ValueError, OSError):
                data = b""
            if not data:
                raise ChildGone(self._end())
            self._buffer += data

    def _end(self) -> int:
        """Waits for an ending process's code; one that closed its pipe and lives on is killed."""
        try:
            return self._process.wait(_KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(_KILL_WAIT_S)
