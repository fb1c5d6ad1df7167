"""How fast documents become findable by words.

    python -m tests.bench.ingest_speed [--out FILE] [--embedder builtin|none]

Takes in the whole homelab corpus as a watched folder and once more as uploads (counts must be equal, a second scan must
change nothing, every failure must have a name), then single uploads of 20 kB into the full library, then a PDF of 100
pages. Embedding runs beside it as in daily life. Prints `name value limit`; fails where a limit is missed.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from app.ingest.extract.extractor import Extractor
from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import Embedder
from app.settings import ROOT, Settings
from app.store import documents
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary
from tests.waiting import until

CORPUS = ROOT.parent / "shared" / "corpus" / "homelab"
MIB = 1024 * 1024
LONG_S = 600.0
SINGLES = 10
TOGETHER = 50
"""Files in one request, as a browser sends a dropped folder."""

PAGES = 100

Figure = tuple[str, float, str]


def main() -> int:
    """Measures, prints, and returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--embedder", choices=("builtin", "none"), default="builtin")
    arguments = parser.parse_args()
    embedder: Embedder = BuiltinEmbedder() if arguments.embedder == "builtin" else WordEmbedder()
    if not CORPUS.is_dir():
        print("the homelab corpus is not here: nothing measured")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = [
            *by_folder(Path(folder) / "folder", embedder),
            *by_upload(Path(folder) / "upload", embedder),
            *by_pdf(Path(folder)),
        ]
    missed = [name for name, value, limit in figures if not is_kept(value, limit)]
    for name, value, limit in figures:
        print(f"{name} {value:.2f} {limit}")
    if arguments.out:
        arguments.out.write_text(json.dumps({name: value for name, value, _ in figures}, indent=2))
    print("missed: " + ", ".join(missed) if missed else "all limits kept")
    return bool(missed)


def by_folder(data_dir: Path, embedder: Embedder) -> list[Figure]:
    """The corpus as a watched folder; then a scan that must find nothing to do."""
    with IngestLibrary(Settings(_env_file=None, data_dir=data_dir), embedder=embedder).start() as library:
        library.add("warm.md", "# Warm\n\nThe extraction child and the embedder are started by this.")
        library.settle(LONG_S)
        started = time.monotonic()
        collection_id = library.folders.add_folder(USER, str(CORPUS))
        seconds = _until_findable(library, started)
        size = sum(row.bytes for row in library.rows())
        files = len(library.rows())
        until(lambda: library.scan_state(collection_id).state == "done", "the first scan is over", LONG_S)
        before = [(row.id, row.path, row.sha256) for row in library.rows()]
        started = time.monotonic()
        library.folders.request_scan(USER, collection_id)
        until(lambda: library.scan_state(collection_id).state == "done", "the second scan is over", LONG_S)
        rescan_ms = (time.monotonic() - started) * 1000
        assert before == [(row.id, row.path, row.sha256) for row in library.rows()]
        result = library.scan_state(collection_id).result
        changes = sum(result[key] for key in ("added", "changed", "renamed", "removed"))
        _print_failures(library)
    return [
        ("folder_files", files - 1, ">= 1"),
        ("folder_findable_mib_s", size / MIB / seconds, ">= 1"),
        ("folder_findable_files_s", files / seconds, ">= 85"),
        ("second_scan_changes", changes, "<= 0"),
        ("second_scan_ms", rescan_ms, "<= 1000"),
    ]


def by_upload(data_dir: Path, embedder: Embedder) -> list[Figure]:
    """The corpus as uploads; then single files into the full library."""
    with IngestLibrary(Settings(_env_file=None, data_dir=data_dir), embedder=embedder).start() as library:
        library.add("warm.md", "# Warm\n\nThe extraction child and the embedder are started by this.")
        library.settle(LONG_S)
        paths = sorted(path for path in CORPUS.rglob("*") if path.is_file())
        started = time.monotonic()
        for start in range(0, len(paths), TOGETHER):
            some = paths[start : start + TOGETHER]
            library.add_all({path.relative_to(CORPUS).as_posix(): path.read_bytes() for path in some})
        seconds = _until_findable(library, started)
        size = sum(row.bytes for row in library.rows())
        waits = [_single(library, number) for number in range(SINGLES)]
        missing = len(paths) + 1 + SINGLES - len(library.rows())
    return [
        ("upload_missing_files", missing, "<= 0"),
        ("upload_findable_mib_s", size / MIB / seconds, ">= 1"),
        ("single_20kb_findable_ms_max", max(waits), "<= 1000"),
    ]


def by_pdf(folder: Path) -> list[Figure]:
    """A PDF of many pages of text, read by the extraction child alone."""
    path = folder / "long.pdf"
    canvas = Canvas(str(path))
    for page in range(PAGES):
        for line in range(50):
            words = hashlib.sha256(f"{page} {line}".encode()).hexdigest()
            canvas.drawString(50, 780 - line * 14, f"Page {page} line {line}: {words[:30]} {words[30:]}")
        canvas.showPage()
    canvas.save()
    extractor = Extractor()
    try:
        started = time.monotonic()
        extraction, _ = extractor.extract(path, path.name)
        seconds = time.monotonic() - started
    finally:
        extractor.close()
    assert extraction.pages == PAGES
    return [("pdf_100_pages_s", seconds, "<= 3")]


def is_kept(value: float, limit: str) -> bool:
    """Whether a figure keeps a limit such as `>= 1`."""
    sign, bound = limit.split()
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def _until_findable(library: IngestLibrary, started: float) -> float:
    """Seconds from `started` until no document waits to be read."""

    def is_over() -> bool:
        by_status = library.database.read(lambda session: documents.counts(session, USER)).by_status
        waiting = by_status.get("queued", 0) + by_status.get("parsing", 0)
        return waiting == 0 and sum(by_status.values()) > 1

    resting = threading.Event()
    while not is_over():
        resting.wait(0.1)
    return time.monotonic() - started


def _single(library: IngestLibrary, number: int) -> float:
    """Milliseconds from the first byte of a 20 kB upload until words find it."""
    text = f"# Single {number}\n\n" + f"Sentence of upload {number} about nothing in particular. " * 360
    started = time.monotonic()
    document_id = library.add(f"single-{number}.md", text[:20_000])
    library.wait_for(document_id, "embedding", "ready")
    return (time.monotonic() - started) * 1000


def _print_failures(library: IngestLibrary) -> None:
    for row in library.rows():
        if row.status == "failed":
            print(f"failed: {row.path} {row.error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
