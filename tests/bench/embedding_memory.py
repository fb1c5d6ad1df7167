"""Memory of a server that takes in and embeds a real folder.

    python -m tests.bench.embedding_memory [--seconds 120] [--out FILE]

Watches the homelab corpus (else Docent's own docs) and adds up what every process holds but the child that reads files,
five times a second: while embedding (memory stops growing after some hundred passages), and after a search among it.
Prints `name value limit`.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psutil

from tests.bench import search_library as library
from tests.server import ROOT, ServerProcess

LIMIT_MB = 420
EVERY_S = 0.2
PARSER = "app.ingest.extract"
"""In the command line of the child that reads files."""


def main() -> int:
    """Measures; 1 when the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    corpus = library.HOMELAB / "homelab"
    watched = corpus if corpus.is_dir() else ROOT / "docs"
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data", WATCH_DIRS=watched) as server:
        peak = watch(server, options.seconds)
        server.request("POST", "/api/search", {"query": "How is a backup restored?"})
        time.sleep(1)
        after = held(server)
        server.terminate()
        with closing(sqlite3.connect(Path(folder) / "data" / "docent.db")) as file:
            passages = file.execute("SELECT count(*) FROM vectors").fetchone()[0]
    results = [
        ("embedding_passages", passages, None),
        ("embedding_rss_peak_mb", peak / 1e6, LIMIT_MB),
        ("embedding_rss_after_search_mb", after / 1e6, LIMIT_MB),
    ]
    for name, value, limit in results:
        print(name, f"{value:.1f}", "-" if limit is None else limit)
    if options.out:
        rows = [{"name": name, "value": value, "limit": limit} for name, value, limit in results]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(limit is not None and value > limit for _, value, limit in results))


def watch(server: ServerProcess, seconds: float) -> int:
    """The most bytes held at once."""
    began, peak = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        peak = max(peak, held(server))
        time.sleep(EVERY_S)
    return peak


def held(server: ServerProcess) -> int:
    """Resident bytes of the server and its children, without the child that reads files."""
    assert server.process is not None
    top = psutil.Process(server.process.pid)
    total = 0
    for process in (top, *top.children(recursive=True)):
        try:
            if PARSER not in " ".join(process.cmdline()):
                total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
