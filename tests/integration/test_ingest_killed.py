"""A process killed in the middle of its work: after the next start everything is ready, nothing doubled, nothing over.

A real process is killed with SIGKILL while it reads and embeds real documents.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.settings import ROOT, Settings
from app.store.engine import Database
from app.store.models.library import Chunk, Document, Job
from app.store.models.vectors import Vector
from tests.ingest_library import IngestLibrary, assert_sound
from tests.ingest_parts import count, sections
from tests.waiting import until

DOCUMENTS = 40

LIFE = """
import sys, threading
from pathlib import Path
from app.settings import Settings
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import IngestLibrary

class Slow(WordEmbedder):
    def embed_passages(self, texts):
        threading.Event().wait(0.02)
        return super().embed_passages(texts)

with IngestLibrary(Settings(_env_file=None, data_dir=Path(sys.argv[1])), embedder=Slow()).start() as library:
    print("working", flush=True)
    threading.Event().wait(60)
"""


def live_until(settings: Settings, reached: str, share: float) -> None:
    """Runs a life in a process of its own and kills it once `share` of the documents have `reached` a state."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIFE, str(settings.data_dir)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    database = Database(settings.database)
    states = {"parsing": ("embedding", "ready"), "embedding": ("ready",)}[reached]

    def is_there() -> bool:
        query = select(func.count()).select_from(Document).where(Document.status.in_(states))
        done = database.read(lambda session: session.scalar(query)) or 0
        return done >= share * DOCUMENTS or process.poll() is not None

    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        until(is_there, f"{share:.0%} of {reached} done", 60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        database.close()
        if process.stdout:
            process.stdout.close()


@pytest.mark.parametrize(("reached", "share"), [("parsing", 0.1), ("parsing", 0.7), ("embedding", 0.3)])
def test_a_kill_loses_nothing_and_doubles_nothing(settings: Settings, reached: str, share: float) -> None:
    """Whatever the moment: every acknowledged upload ends ready, once, in the life after."""
    with IngestLibrary(settings) as library:
        for number in range(DOCUMENTS):
            library.add(f"{number}.md", sections("shared", f"alpha{number}", f"beta{number}"))
    live_until(settings, reached, share)
    with IngestLibrary(settings).start() as library:
        library.settle(60)
        rows = library.rows()
        assert len(rows) == DOCUMENTS
        assert {(row.status, row.chunks) for row in rows} == {("ready", 3)}
        assert count(library, Chunk) == 3 * DOCUMENTS
        assert count(library, Vector) == 2 * DOCUMENTS + 1
        assert count(library, Job) == 0
        assert_sound(library)


def test_a_folder_being_scanned_when_the_kill_came_is_scanned_again(settings: Settings, tmp_path: Path) -> None:
    """The scan's job is taken over like any other."""
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(DOCUMENTS):
        (root / f"{number}.md").write_text(sections("shared", f"alpha{number}", f"beta{number}"))
    with IngestLibrary(settings) as library:
        library.folders.add_folder(1, str(root))
    live_until(settings, "parsing", 0.2)
    with IngestLibrary(settings).start() as library:
        library.settle(60)
        assert [row.status for row in library.rows()] == ["ready"] * DOCUMENTS
        assert count(library, Chunk) == 3 * DOCUMENTS
        assert_sound(library)
