"""The demo model as an operator starts it: llama.cpp's own server with a small real model.

Used by the tests against a real server. It is there once `scripts/setup --demo` has run, as `./validate.sh demo` does.
"""

import json
import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.server import ROOT, clean_environment
from tests.waiting import until

MODEL = "SmolLM2-135M-Instruct"
START_S = 60
STOP_S = 10


def need_demo_model() -> None:
    """Skips the test where the demo model is not installed; fails it where it was said to be (`DOCENT_DEMO`)."""
    if (ROOT / ".venv-demo/stamp").exists():
        return
    if os.environ.get("DOCENT_DEMO"):
        pytest.fail("the demo model is missing though DOCENT_DEMO is set")
    pytest.skip("the demo model is not installed; scripts/setup --demo does that")


class RealServer:
    """`scripts/demo-model` on a free port, ended on leaving. `url` ends in `/v1`, `said` is what it printed."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "demo-model.log"
        self.url = ""

    def __enter__(self) -> "RealServer":
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                ["scripts/demo-model", "--port", "0"],
                cwd=ROOT,
                env=clean_environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            until(lambda: "Settings" in self.said or self.process.poll() is not None, "the demo model serves", START_S)
        except AssertionError:
            self.process.kill()
            raise
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", self.said)
        assert found, self.said
        self.url = found[0]
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGTERM)

    @property
    def said(self) -> str:
        return self._output.read_text(encoding="utf-8")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].removesuffix("/v1"))

    def end(self, number: int) -> int:
        """Sends the signal where it still runs; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def busy_slots(self) -> int:
        """How many requests it works on."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/slots", timeout=30) as reply:
            slots: list[dict[str, Any]] = json.load(reply)
        return sum(slot["is_processing"] for slot in slots)
