"""Runs test files side by side, each alone in its own pytest process, and shows each one's output when it ends.

python scripts/browser_suites.py [--jobs N] FILE …

Called by validate.sh for the end-to-end suites. The longest files start first. Stops at the first red one, and when it
is interrupted: those that still run are interrupted, so that they end their servers and browsers, and the rest is not
started.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

STEP_S = 0.1
END_S = 60
"""How long an interrupted file may take to end what it started."""


@dataclass
class Suite:
    """One file being run; what it prints goes to `output`."""

    path: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    began: float = field(default_factory=time.monotonic)

    def report(self) -> str:
        """All that it printed, between its name and how it ended."""
        self.output.seek(0)
        said = self.output.read().decode("utf-8", "replace").strip()
        code, seconds = self.process.returncode, round(time.monotonic() - self.began)
        ended = "ok" if code == 0 else f"FAILED (exit code {code})"
        name = Path(self.path).stem
        return f"\n== {name}\n{said}\n== {name} {ended}, {seconds} s"


def main(arguments: list[str]) -> int:
    """Runs the files; 1 when one is red."""
    parser = argparse.ArgumentParser(description="Runs test files side by side.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT for what it runs in the background
        signal.signal(number, signal.default_int_handler)
    waiting = sorted(options.files, key=lambda path: Path(path).stat().st_size)
    running: list[Suite] = []
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                running.append(start(waiting.pop()))
            for suite in ended(running):
                print(suite.report(), flush=True)
                if suite.process.returncode:
                    return 1
            time.sleep(STEP_S)
    finally:
        interrupt(running)
    return 0


def start(path: str) -> Suite:
    """Starts one file in a process of its own, and in a group of its own: a second Ctrl+C would break off its end."""
    output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
    command = [sys.executable, "-m", "pytest", path]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)
    return Suite(path, process, output)


def ended(running: list[Suite]) -> list[Suite]:
    """The suites that have ended, taken out of `running`."""
    done = [suite for suite in running if suite.process.poll() is not None]
    running[:] = [suite for suite in running if suite not in done]
    return done


def interrupt(running: list[Suite]) -> None:
    """Ends what still runs as Ctrl+C does, and waits for it: its fixtures stop servers and browsers."""
    for suite in running:
        suite.process.send_signal(signal.SIGINT)
    for suite in running:
        try:
            suite.process.wait(END_S)
        except subprocess.TimeoutExpired:
            suite.process.kill()
        print(f"\n== {Path(suite.path).stem} was interrupted", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
