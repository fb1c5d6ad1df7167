"""What the extraction child may not do, and what happens to files made to hurt it."""

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.ingest.errors import IngestError
from app.ingest.extract.extractor import Extractor, Limits

GRACE_S = 2


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("# Pump\n\nTurn the valve — slowly.\n")
    return path


@pytest.fixture
def extractor() -> Iterator[Extractor]:
    extractor = Extractor()
    yield extractor
    extractor.close()


def test_the_child_gets_no_secrets_and_no_open_files(
    extractor: Extractor, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment is a short list, and it holds nothing but its pipes."""
    monkeypatch.setenv("LLM_API_KEY", "sk-not-for-parsers")
    with note.open("rb") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        extractor.extract(note, note.name)
        (child,) = psutil.Process().children()

        assert "LLM_API_KEY" not in child.environ()
        open_files = [os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{child.pid}/fd")]
        assert all(name.startswith("pipe:") or name == "/dev/null" for name in open_files)


SHUT_IN = """
import os, resource, socket, subprocess, sys, tempfile
from app.ingest.extract import sandbox
sandbox.harden(512 << 20)
sandbox.allow_cpu(5)
attempts = {
    "socket": lambda: socket.socket(),
    "resolve": lambda: socket.getaddrinfo("localhost", 80),
    "process": lambda: subprocess.run(["true"]),
    "fork": os.fork,
    "write": lambda: open(sys.argv[1], "w"),
    "remove": lambda: os.remove(__file__),
    "memory": lambda: bytearray(600 << 20),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "allowed")
    except (PermissionError, MemoryError) as error:
        print(name, type(error).__name__)
print("cpu", resource.getrlimit(resource.RLIMIT_CPU)[0] < 10)
"""


def test_the_sandbox_holds(tmp_path: Path) -> None:
    """No socket, no process, no file written, no more memory than granted."""
    script = tmp_path / "shut_in.py"
    script.write_text(SHUT_IN)
    root = Path(__file__).resolve().parents[2]
    result = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "written")],
        capture_output=True,
        text=True,
        timeout=30,
        env={"PYTHONPATH": str(root)},
        check=False,
    )

    assert result.stdout.split("\n")[:-1] == [
        *(f"{name} PermissionError" for name in ("socket", "resolve", "process", "fork", "write", "remove")),
        "memory MemoryError",
        "cpu True",
    ], result.stderr
    assert not (tmp_path / "written").exists()


def test_the_child_imports_no_server_and_no_database() -> None:
    """It starts fast because it is small."""
    code = (
        "import sys, app.ingest.extract.child; "
        "print([m for m in ('sqlalchemy', 'fastapi', 'pydantic', 'numpy', 'openai', 'uvicorn') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=Path(__file__).resolve().parents[2],
        check=True,
    )

    assert result.stdout.strip() == "[]"


def test_bombs_end_within_the_limit_and_hurt_nobody(tmp_path: Path, note: Path) -> None:
    """Each is refused or killed in time, with a sentence, and a plain note is read after it."""
    deep = tmp_path / "deep.html"
    deep.write_bytes(b"<div>" * 1_000_000)
    comments = tmp_path / "comments.md"
    comments.write_bytes(b"<!--" * 300_000 + b"[" * 300_000)
    zip_bomb = tmp_path / "bomb.docx"
    with (
        zipfile.ZipFile(zip_bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w") as part,
    ):
        for _ in range(60):
            part.write(b"a" * (1 << 20))
    extractor = Extractor(Limits(wall_s=15))
    try:
        for bomb, reason in ((deep, "corrupt"), (zip_bomb, "too_long")):
            with pytest.raises(IngestError) as caught:
                extractor.extract(bomb, bomb.name)
            assert caught.value.reason == reason
            assert extractor.extract(note, note.name)[0].title == "Pump"
        started = time.monotonic()
        extractor.extract(comments, comments.name)
        assert time.monotonic() - started < 15 + GRACE_S
    finally:
        extractor.close()
