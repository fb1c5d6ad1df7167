"""Greps over all tracked files: no registry address, no path of a machine, no patching of the application in tests."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

RULES: list[tuple[str, str, str]] = [
    (r"https?://", r"requirements.*\.lock$", "a lock holds hashes and no addresses"),
    (
        r"https?://[^ ]*(?:/simple/|/pypi/|registry\.)|files\.pythonhosted|pypi\.org",
        r"",
        "no file names a registry's host",
    ),
    (r"(?:^|[^A-Za-z.])/(?:work|farm)/", r"", "no file names a path of one machine"),
    (
        r"\bmonkeypatch\.setattr\(\s*[\"']?app\b|\bpatch(?:\.object)?\(\s*[\"']?app\b",
        r"^tests/",
        "fakes enter by create_app",
    ),
    (r"\btime\.sleep\(", r"^tests/(?:unit|integration)/", "a test waits on a state, not on time"),
    (r"pytest\.mark\.(?:skip|xfail)\b", r"^tests/", "a test runs, or skips at run time with a reason"),
]
NEVER_TRACKED = {"uv.lock", ".env"}


def main() -> int:
    """Prints each violation; returns 1 if there is any."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    problems = [f"{name}: may not be committed" for name in names if name in NEVER_TRACKED]
    for name in filter(None, names):
        if name != "scripts/check_repository.py" and "/vendor/" not in name:
            problems += file_problems(name)
    print("\n".join(problems) or "the repository keeps its rules")
    return bool(problems)


def file_problems(name: str) -> list[str]:
    """Lines of one file that match a rule; binary files have none."""
    try:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return []
    rules = [(re.compile(pattern), reason) for pattern, where, reason in RULES if re.search(where, name)]
    return [
        f"{name}:{number}: {line.strip()[:80]} ({reason})"
        for number, line in enumerate(lines, 1)
        for pattern, reason in rules
        if pattern.search(line)
    ]


if __name__ == "__main__":
    sys.exit(main())
