"""`scripts/browser_suites.py`: test files side by side, each alone in its process."""

import subprocess
import sys
from pathlib import Path

from tests.server import ROOT, clean_environment
from tests.waiting import until

RUNNER = ROOT / "scripts" / "browser_suites.py"
BARE = clean_environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD=1)
"""Pytest without its plugins starts in a third of the time."""

MEETS = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.waiting import until

def test_it_meets_the_other():
    print("said by {own}")
    Path({own!r}).touch()
    until(Path({other!r}).exists, "the other file runs, too")
    {ending}
"""

ENDLESS = """
import threading
from pathlib import Path
import pytest

@pytest.fixture
def server():
    yield
    Path("ended").touch()

def test_it_runs_on(server):
    Path("begun").touch()
    threading.Event().wait(100)
"""


def run(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUNNER), "--jobs", "2", *files]
    return subprocess.run(command, cwd=folder, env=BARE, capture_output=True, text=True, check=False)


def meeting(own: str, other: str, ending: str) -> str:
    return MEETS.format(root=str(ROOT), own=own, other=other, ending=ending)


def test_files_run_side_by_side_and_each_one_s_output_stays_together(tmp_path: Path) -> None:
    """Both wait for each other, so one after the other neither would end."""
    (tmp_path / "test_one.py").write_text(meeting("one", "two", "assert True"))
    (tmp_path / "test_two.py").write_text(meeting("two", "one", "raise SystemError"))

    ran = run(tmp_path, "test_one.py", "test_two.py")

    assert ran.returncode == 1
    blocks = ran.stdout.split("\n== ")
    red = next(block for block in blocks if "said by two" in block)
    assert "SystemError" in red
    assert "said by one" not in red
    assert "test_two FAILED (exit code 1)" in ran.stdout


def test_the_first_red_file_ends_the_others_cleanly(tmp_path: Path) -> None:
    """What runs is interrupted and takes down what it set up; what waits is not started."""
    (tmp_path / "test_endless.py").write_text(ENDLESS)
    (tmp_path / "test_red.py").write_text(meeting("red", "begun", "raise SystemError  # beside the endless one"))
    (tmp_path / "test_late.py").write_text("def test_late(): pass")

    ran = run(tmp_path, "test_late.py", "test_endless.py", "test_red.py")

    assert ran.returncode == 1
    assert (tmp_path / "ended").exists()
    assert "test_endless was interrupted" in ran.stdout
    assert "test_late" not in ran.stdout


def test_green_files_are_green_and_an_empty_one_is_red(tmp_path: Path) -> None:
    """A file in which nothing is collected checks nothing."""
    (tmp_path / "test_green.py").write_text("def test_green(): pass")
    (tmp_path / "test_empty.py").write_text("")

    assert run(tmp_path, "test_green.py").returncode == 0
    assert run(tmp_path, "test_empty.py").returncode == 1


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ended from outside, as by a time limit of a build server."""
    (tmp_path / "test_endless.py").write_text(ENDLESS)
    process = subprocess.Popen([sys.executable, str(RUNNER), "test_endless.py"], cwd=tmp_path, env=BARE)

    until((tmp_path / "begun").exists, "the file runs")
    process.terminate()

    assert process.wait(30) == 130
    assert (tmp_path / "ended").exists()
