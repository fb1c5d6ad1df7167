"""What is known of the environment before any model server was asked: the version, the checkout's revision.

Reads files of the checkout only. What a server says of itself is added by whoever asks it
(`dataclasses.replace(own_environment(), backend=…)`); what nobody knows stays None.
"""

import re
from pathlib import Path

from app.settings import ROOT
from app.store.loop_guard_log import Environment

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def own_environment(
    *,
    root: Path = ROOT,
    rules_version: str | None = None,
    strikes: int | None = None,
    observation: int | None = None,
    stagnation: int | None = None,
) -> Environment:
    """This Docent's version and revision, and the guard's thresholds."""
    return Environment(
        git_sha=git_revision(root),
        rules_version=rules_version,
        strikes=strikes,
        observation=observation,
        stagnation=stagnation,
    )


def git_revision(root: Path) -> str | None:
    """The commit that the checkout at `root` stands on, None where that can't be told."""
    try:
        return _revision(root)
    except (OSError, UnicodeDecodeError):
        return None


def _revision(root: Path) -> str | None:
    folder = root / ".git"
    if folder.is_file():  # a worktree of another checkout
        folder = root / _after(folder.read_text(encoding="utf-8"), "gitdir:")
    head = (folder / "HEAD").read_text(encoding="utf-8").strip()
    name = _after(head, "ref:")
    if not name:
        return _sha(head)
    shared = folder / "commondir"
    places = [folder, folder / shared.read_text(encoding="utf-8").strip()] if shared.is_file() else [folder]
    for place in places:
        if (place / name).is_file():
            return _sha((place / name).read_text(encoding="utf-8"))
        if (place / "packed-refs").is_file():
            for line in (place / "packed-refs").read_text(encoding="utf-8").splitlines():
                sha, _, packed = line.partition(" ")
                if packed == name:
                    return _sha(sha)
    return None


def _after(line: str, mark: str) -> str:
    return line.removeprefix(mark).strip() if line.startswith(mark) else ""


def _sha(text: str) -> str | None:
    return text.strip() if _SHA.fullmatch(text.strip()) else None
