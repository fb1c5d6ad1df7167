"""The real Docent as a process of its own, on a free port, with a data folder of its own.

Used by the browser tests' fixtures and by scripts/screenshots.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
START_S = 40
STOP_S = 15


def free_port() -> int:
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RunningServer:
    """`docent serve` from enter to exit; `log()` is what it wrote.

    Raises:
        RuntimeError: when it ends or stays silent instead of starting; its log is in the message.
    """

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        data_dir.mkdir(parents=True, exist_ok=True)
        self._log_path = data_dir / "server.log"
        kept = {
            name: os.environ[name] for name in ("PATH", "LANG", "TZ", "COVERAGE_PROCESS_START") if name in os.environ
        }
        self._env = {**kept, "HOME": str(data_dir), "DATA_DIR": str(data_dir), **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "app", "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._env, stdout=log, stderr=log, start_new_session=True
            )
        self._wait_until_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """Everything the server wrote."""
        return self._log_path.read_text("utf-8", "replace")

    def _wait_until_up(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as reply:
                    if reply.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"docent did not start:\n{self.log()}")
