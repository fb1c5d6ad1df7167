"""A real server process, started as an operator does, and ended the same way.

Used by the tests of the process, by the browser tests' fixtures, by benchmarks and by scripts/screenshots.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
START_S = 40
STOP_S = 15


PORTS = range(20_000, 32_000)
"""Below those that systems hand out by themselves: no client and no test server comes upon one meanwhile."""

_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port nothing listens on, which no other process gets from here as long as this one lives.

    A server takes seconds to start, and other tests start theirs beside it. The port is reserved by the UDP port of its
    number, which is held; TCP knows nothing of it.
    """
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            reserved = socket.socket(type=socket.SOCK_DGRAM)
            _reserved.append(reserved)
            reserved.bind(("127.0.0.1", port))
            return port


def clean_environment(**settings: object) -> dict[str, str]:
    """This process's environment with nothing of Docent's but `settings`."""
    passed = ("PATH", "LANG", "TZ", "TMPDIR", "COVERAGE_PROCESS_START")
    kept = {name: value for name, value in os.environ.items() if name in passed}
    return {**kept, **{name: str(value) for name, value in settings.items()}}


class ServerProcess:
    """`docent serve` on a free port of loopback, ended on leaving; `log()` is what it wrote.

    Args:
        data_dir: The installation's folder, also its HOME.
        settings: Further settings, by their environment names.

    Raises:
        AssertionError: when it ends or stays silent instead of starting; its log is in the message.
    """

    def __init__(self, data_dir: Path, **settings: object) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log_path = data_dir / "server.log"
        self._environment = clean_environment(HOME=data_dir, DATA_DIR=data_dir, PORT=self.port, **settings)
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0

    def __enter__(self) -> "ServerProcess":
        began = time.monotonic()
        with self.log_path.open("wb") as log:
            command = [sys.executable, "-m", "app", "serve"]
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        while not self._is_up():
            if self.process.poll() is not None or time.monotonic() - began > START_S:
                self.__exit__(None, None, None)
                raise AssertionError(f"the server did not start:\n{self.log()}")
            time.sleep(0.01)
        self.started_s = time.monotonic() - began
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        """What it has written so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request; status and body (JSON where it is)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"content-type": "application/json"} if data else {}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, _parsed(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())

    def terminate(self) -> float:
        """Sends SIGTERM; seconds until the process was gone."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        return time.monotonic() - began

    def restart(self) -> None:
        """Ends it as an operator does, and starts it again on the same folder and port."""
        self.terminate()
        self.__enter__()

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/healthz", timeout=1) as reply:
                return bool(reply.status == 200)
        except (OSError, urllib.error.URLError):
            return False


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
