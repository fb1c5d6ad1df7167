"""The key beside the database, and what is known of the environment without asking a server."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.guard.environment import git_revision, own_environment
from app.guard.log_files import KEY_NAME, RunLock, load_key
from app.settings import ROOT

SHA = "0123456789abcdef0123456789abcdef01234567"


def test_the_key_is_made_once_and_read_by_the_owner_alone(tmp_path: Path) -> None:
    """32 random bytes outside the database, the same after a restart."""
    key = load_key(tmp_path / "data")
    assert len(key) == 32
    assert load_key(tmp_path / "data") == key
    assert (tmp_path / "data" / KEY_NAME).stat().st_mode & 0o777 == 0o600
    assert load_key(tmp_path / "other") != key


def test_whoever_starts_at_once_agrees_on_one_key(tmp_path: Path) -> None:
    """Whoever comes second reads what the first wrote, whole: the file is locked per opening, so that threads stand for
    processes here."""
    with ThreadPoolExecutor(16) as pool:
        keys = list(pool.map(load_key, [tmp_path] * 64))
    assert {len(key) for key in keys} == {32}
    assert len(set(keys)) == 1


def test_a_key_that_a_crash_cut_short_is_made_anew(tmp_path: Path) -> None:
    """Half a key is none."""
    (tmp_path / KEY_NAME).write_bytes(b"short")
    key = load_key(tmp_path)
    assert len(key) == 32
    assert (tmp_path / KEY_NAME).read_bytes() == key


def test_without_a_usable_file_the_guard_goes_on_with_a_key_of_the_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is worth more with keys that change than not at all; a line says so."""
    (tmp_path / KEY_NAME).mkdir()
    assert len(load_key(tmp_path)) == 32
    assert "guard_key_unusable error=IsADirectoryError" in caplog.messages


def test_a_lock_that_cannot_be_opened_is_held_by_others_for_all_one_knows(tmp_path: Path) -> None:
    """Then no run is called dead."""
    lock = RunLock(tmp_path / "missing" / "guard.lock")
    assert lock.try_alone() is False
    lock.share()
    lock.close()


def checkout(root: Path, head: str, **files: str) -> Path:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text(head)
    for name, text in files.items():
        place = root / ".git" / name.replace("__", "/").replace("packed_refs", "packed-refs")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


@pytest.mark.parametrize(
    ("head", "files", "revision"),
    [
        (f"{SHA}\n", {}, SHA),
        ("ref: refs/heads/main\n", {"refs__heads__main": f"{SHA}\n"}, SHA),
        (
            "ref: refs/heads/main\n",
            {"packed_refs": f"# pack-refs\n{'0' * 40} refs/heads/x\n{SHA} refs/heads/main\n"},
            SHA,
        ),
        ("ref: refs/heads/main\n", {}, None),
        ("ref: refs/heads/main\n", {"refs__heads__main": "not a commit"}, None),
        ("", {}, None),
    ],
)
def test_the_revision_is_read_from_the_checkout(
    tmp_path: Path, head: str, files: dict[str, str], revision: str | None
) -> None:
    """Loose, packed, detached; what can't be told is None, not a guess."""
    assert git_revision(checkout(tmp_path, head, **files)) == revision


def test_a_worktree_finds_its_checkout(tmp_path: Path) -> None:
    """Its `.git` is a file, its branches lie with the first one's."""
    main = tmp_path / "main"
    main.mkdir()
    place = checkout(main, "ref: refs/heads/main\n", refs__heads__side=SHA) / ".git" / "worktrees" / "side"
    place.mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/side\n")
    (place / "commondir").write_text("../..\n")
    side = tmp_path / "side"
    side.mkdir()
    (side / ".git").write_text(f"gitdir: {place}\n")
    assert git_revision(side) == SHA


def test_without_a_checkout_the_revision_is_not_known(tmp_path: Path) -> None:
    """Docent may run from an archive."""
    assert git_revision(tmp_path) is None


def test_the_own_environment_has_the_thresholds_and_guesses_nothing() -> None:
    """What a server would have to say is None."""
    facts = own_environment(strikes=2, observation=15, stagnation=5)
    assert (facts.strikes, facts.observation, facts.stagnation) == (2, 15, 5)
    assert (facts.backend, facts.backend_build, facts.model_digest, facts.template_hash) == (None, None, None, None)
    assert facts.git_sha == git_revision(ROOT)
