"""How a large watched folder keeps up with the disk.

    python -m tests.bench.live_folders [--files N]

Takes in N small files (20,000) as a watched folder with the real watcher: how soon the first one is findable, what
comparing all of them again takes, how soon an edit is found after the file was left alone, what 5,000 renames and an
edit embed, and what the request costs that removes it all. Prints `name value limit`; fails where a limit is missed.
"""

import argparse
import tempfile
import time
from pathlib import Path

from app.ingest.notify import open_notifier
from app.settings import Settings
from app.store import collections, jobs
from tests.bench.ingest_speed import is_kept
from tests.ingest_library import USER, IngestLibrary
from tests.ingest_parts import CountingEmbedder, found
from tests.waiting import until

LONG_S = 1800.0
FOLDERS = 200
RENAMED = 5_000
EDITS = 5

Figure = tuple[str, float, str]


def main() -> int:
    """Measures, prints, and returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000)
    arguments = parser.parse_args()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        root, embedder = Path(folder) / "notes", CountingEmbedder()
        write_files(root, arguments.files)
        settings = Settings(_env_file=None, data_dir=Path(folder) / "data", watch_rescan_s=3600)
        with IngestLibrary(settings, embedder=embedder, notifying=open_notifier).start() as library:
            collection_id = first_scan(library, root, figures)
            rescan(library, collection_id, figures)
            edits(library, root, embedder, figures)
            renames(library, root, embedder, figures)
            removal(library, collection_id, figures)
    missed = [name for name, value, limit in figures if limit != "-" and not is_kept(value, limit)]
    print("missed: " + ", ".join(missed) if missed else "all limits kept")
    return bool(missed)


def write_files(root: Path, count: int) -> None:
    """`count` notes in `FOLDERS` directories, each of one passage that stands nowhere else."""
    for number in range(count):
        path = place(root, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nThe note of the word{number}x is kept on shelf {number % 97}.\n")


def place(root: Path, number: int) -> Path:
    """Where a note lies."""
    return root / f"part{number % FOLDERS:03}" / f"note{number}.md"


def first_scan(library: IngestLibrary, root: Path, figures: list[Figure]) -> int:
    """From watching to the first findable document, and to all of them."""
    started = time.monotonic()
    collection_id = library.folders.add_folder(USER, str(root))
    until(lambda: found(library, "note") != set(), "the first one is found", LONG_S)
    note(figures, "first_findable_s", time.monotonic() - started, "<= 3")
    until(lambda: library.scan_state(collection_id).state == "done", "the scan is over", LONG_S, step_s=0.1)
    note(figures, "first_scan_s", time.monotonic() - started, "-")
    settle(library)
    note(figures, "all_ready_s", time.monotonic() - started, "-")
    until(lambda: state(library, collection_id) == "watching", "it is watched", LONG_S)
    settle(library)
    return collection_id


def rescan(library: IngestLibrary, collection_id: int, figures: list[Figure]) -> None:
    """All unchanged."""
    started = time.monotonic()
    library.folders.request_scan(USER, collection_id)
    until(lambda: library.scan_state(collection_id).state == "done", "the second scan is over", LONG_S)
    note(figures, "rescan_unchanged_s", time.monotonic() - started, "<= 3")
    result = library.scan_state(collection_id).result
    note(figures, "rescan_unchanged_files", result["unchanged"], "-")


def edits(library: IngestLibrary, root: Path, embedder: CountingEmbedder, figures: list[Figure]) -> None:
    """From the last write to findable, one edit after the other, each when the folder is quiet."""
    waits: list[float] = []
    embedded = len(embedder.texts)
    for number in range(EDITS):
        place(root, number).write_text(f"# Note {number}\n\nIt says edited{number}y now.\n")
        started = time.monotonic()
        until(lambda number=number: found(library, f"edited{number}y") != set(), "the edit is found", 60)
        waits.append(time.monotonic() - started)
        settle(library)
    note(figures, "edit_findable_s_max", max(waits), "<= 2")
    note(figures, "edit_embedded_passages", (len(embedder.texts) - embedded) / EDITS, "<= 1")


def renames(library: IngestLibrary, root: Path, embedder: CountingEmbedder, figures: list[Figure]) -> None:
    """Files moved to another directory while the watcher looks."""
    embedded, started = len(embedder.texts), time.monotonic()
    (root / "moved").mkdir()
    for number in range(RENAMED):
        path = place(root, number)
        path.rename(root / "moved" / path.name)
    until(lambda: count_moved(library) == RENAMED, "all are moved", LONG_S, step_s=0.5)
    note(figures, "renames_5000_s", time.monotonic() - started, "-")
    settle(library)
    note(figures, "renames_embedded_passages", len(embedder.texts) - embedded, "<= 0")


def removal(library: IngestLibrary, collection_id: int, figures: list[Figure]) -> None:
    """What the request takes, and the work behind it."""
    started = time.monotonic()
    library.folders.remove(USER, collection_id)
    note(figures, "remove_request_ms", (time.monotonic() - started) * 1000, "<= 500")
    assert library.rows() == []
    until(lambda: library.database.read(jobs.pending) == 0, "all are out", LONG_S, step_s=0.5)
    note(figures, "remove_all_s", time.monotonic() - started, "-")
    assert library.orphans().is_sound, library.orphans()


def settle(library: IngestLibrary) -> None:
    """Waits until no job is left, asking seldom: to ask costs the work its time."""
    until(library.worker.is_idle, "all jobs done", LONG_S, step_s=0.5)


def state(library: IngestLibrary, collection_id: int) -> str | None:
    """How the folder is watched."""
    return library.database.read(lambda session: collections.get_collection(session, USER, collection_id)).watch


def count_moved(library: IngestLibrary) -> int:
    """How many documents have their new path."""
    return sum(path.startswith("moved/") for path in library.paths())


def note(figures: list[Figure], name: str, value: float, limit: str) -> None:
    """Prints a figure as it comes."""
    figures.append((name, float(value), limit))
    print(f"{name} {value:.2f} {limit}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
