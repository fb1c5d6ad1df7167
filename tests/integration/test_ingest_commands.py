"""`docent ingest` and `docent worker`: what they take, say and return; beside a server or without one."""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import cli
from app.clock import SystemClock
from app.ingest.commands import Ingest, Ingested, Standing, run_worker
from app.ingest.stored_files import ProcessLock
from app.settings import ROOT, Settings
from app.store.engine import Database
from app.store.migrate import migrate
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import IngestLibrary, assert_sound
from tests.ingest_parts import RAID, fill, sections
from tests.integration.web_library import allowing
from tests.page_server import Page, article, serving_pages
from tests.waiting import until


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """The command line sets up logging for its process; the tests after this one have their own."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    fill(folder, raid=RAID, garden__roses=sections("roses"))
    (folder / ".env").write_text("CANARY")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8" + bytes(100))
    return folder


def ingest(settings: Settings, *paths: Path | str) -> tuple[list[Standing], Ingested]:
    database = Database(settings.database)
    migrate(database)
    standings: list[Standing] = []
    try:
        ended = Ingest(database, settings, WordEmbedder(), SystemClock()).run(map(str, paths), standings.append)
    finally:
        database.close()
    return standings, ended


def test_files_and_folders_are_added_and_waited_for(settings: Settings, shelf: Path) -> None:
    """A folder's files under the folder's name, secrets passed over; a second time nothing is added."""
    single = shelf.parent / "single.md"
    single.write_text(sections("alone"))
    standings, ended = ingest(settings, shelf, single)
    assert standings[-1] == Standing(total=3, searchable=3, ready=3, failed=0, waiting_for_vectors=0)
    assert ended.is_clean
    assert dict(ended.skipped) == {"secret": 1, "unsupported": 1}
    with IngestLibrary(settings) as library:
        assert library.paths() == ["shelf/garden/roses.md", "shelf/raid.md", "single.md"]
        assert_sound(library)
        before = library.rows()
    ingest(settings, shelf, single)
    with IngestLibrary(settings) as library:
        assert library.rows() == before


def test_addresses_are_fetched_beside_files(settings: Settings, shelf: Path) -> None:
    """What is refused or can't be had is told like a file that can't be read."""
    with serving_pages({"/crane": Page(article("The crane", "It lifts boats of up to nine tonnes. " * 9))}) as server:
        urls = (f"{server.url}/crane", f"{server.url}/none", "https://10.0.0.1/")
        _, ended = ingest(allowing(settings), *urls, shelf / "raid.md")
    assert [(row.status, row.error) for row in ended.rows][:2] == [("ready", None), ("failed", "fetch_not_found")]
    assert ended.rows[2].path == "raid.md"
    assert [(name, error.code) for name, error in ended.refused] == [("https://10.0.0.1/", "ingest_fetch_private")]


def test_what_cannot_be_added_is_named(settings: Settings, tmp_path: Path) -> None:
    """A missing path, a file over the limit, an empty one: each its own reason, the rest goes on."""
    (tmp_path / "big.txt").write_bytes(bytes(1024 * 1024 + 1))
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "good.md").write_text(RAID)
    small = settings.model_copy(update={"upload_max_mb": 1})
    names = ("missing", "big.txt", "empty.txt", "good.md")
    _, ended = ingest(small, *(tmp_path / name for name in names))
    refused = {Path(name).name: error.code for name, error in ended.refused}
    assert refused == {"missing": "path_missing", "big.txt": "upload_too_large"}
    assert {row.path: row.error for row in ended.rows} == {"empty.txt": "empty", "good.md": None}
    assert not ended.is_clean


def test_beside_a_server_its_worker_does_the_work(settings: Settings, shelf: Path) -> None:
    """The command only adds and watches; nothing is read twice."""
    with IngestLibrary(settings).start() as library:
        standings, _ = ingest(settings, shelf)
        assert standings[-1].ready == 2
        assert {row.status for row in library.rows()} == {"ready"}
        assert_sound(library)


def test_the_work_goes_on_when_the_server_ends_meanwhile(settings: Settings, shelf: Path) -> None:
    """Who finds itself alone does the work."""
    with IngestLibrary(settings) as library:
        lock = ProcessLock(settings.data_dir)
        lock.share()
        result: list[Standing] = []
        command = threading.Thread(daemon=True, target=lambda: result.extend(ingest(settings, shelf)[0]))
        command.start()
        until(lambda: len(library.rows()) == 2, "the files are queued")
        assert {row.status for row in library.rows()} == {"queued"}
        lock.close()
        command.join(30)
        assert result[-1].ready == 2


def test_a_down_embedder_does_not_keep_the_command_waiting(settings: Settings, shelf: Path) -> None:
    """The documents are findable by words; vectors come when the embedder is back."""
    embedder = WordEmbedder()
    embedder.is_down = True
    database = Database(settings.database)
    migrate(database)
    ended = Ingest(database, settings, embedder, SystemClock()).run([str(shelf)], lambda standing: None)
    database.close()
    assert {row.status for row in ended.rows} == {"embedding"}
    assert ended.is_clean


def test_a_worker_of_its_own_reads_what_is_queued_and_watched(settings: Settings, shelf: Path) -> None:
    """Until it is told to stop, which it does cleanly."""
    named = settings.model_copy(update={"watch_dirs": (shelf,)})
    with IngestLibrary(settings) as library:
        queued = library.add("a.md", RAID)
        stopping = threading.Event()
        clean: list[bool] = []
        database = Database(settings.database)
        thread = threading.Thread(
            daemon=True, target=lambda: clean.append(run_worker(database, named, WordEmbedder(), stopping.wait))
        )
        thread.start()
        library.wait_for(queued, "ready")
        until(lambda: len(library.rows()) == 3, "the folder is listed")
        library.settle()
        stopping.set()
        thread.join(10)
        database.close()
        assert clean == [True]
        assert_sound(library)


def test_the_command_line_prints_how_far_it_is_and_fails_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress on standard output, reasons on standard error, exit code 1; 0 when all went well; nothing is 1."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOG_LEVEL", "ERROR")
    (tmp_path / "a.md").write_text(RAID)
    (tmp_path / "empty.txt").write_text("")
    assert cli.main(["ingest", str(tmp_path / "a.md")]) == 0
    assert "1 of 1 can be found by words, 1 ready, 0 failed" in capsys.readouterr().out
    assert cli.main(["ingest", str(tmp_path / "empty.txt"), str(tmp_path / "none")]) == 1
    errors = capsys.readouterr().err
    assert "empty.txt: The file is empty." in errors
    assert "none: There is no file or folder of this name." in errors
    (tmp_path / "nothing").mkdir()
    assert cli.main(["ingest", str(tmp_path / "nothing")]) == 1
    assert "No file was found to add." in capsys.readouterr().err


def test_the_worker_command_ends_on_sigterm(tmp_path: Path) -> None:
    """Exit code 0. How soon is the machine's business here: under load the start alone takes half a minute."""
    environment = {"DATA_DIR": str(tmp_path / "data"), "PATH": "/usr/bin:/bin", "LOG_LEVEL": "INFO"}
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "worker"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert "Reading and embedding" in process.stdout.readline()
        until(lambda: (tmp_path / "data" / "worker.lock").exists(), "the worker is up")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
