"""What names cost in a large library: reading a question's chips, and suggesting while one is typed.

    python -m tests.bench.naming [--documents N]

Prints `name value limit`: medians of 15 runs in milliseconds, each with a session of its own, in a library of N
documents (20,000) of 12 kB in 200 folders. Most names that are asked for were chosen from suggestions: whole paths.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import median

from app.api.asked import read_asked
from app.clock import SystemClock
from app.search import fulltext
from app.store import collections, suggesting
from app.store.engine import Database, Session
from app.store.migrate import migrate
from app.store.models import Chunk, Document
from app.store.scope import EVERYWHERE

RUNS = 15
TEXT_CHARS = 12_000


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    count = parser.parse_args().documents
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'docent.db'}")
        migrate(database)
        database.write(lambda session: fill(session, count))
        asking(database, "no_marks", "What does the plan of 2024 say about backups?", 5)
        asking(database, "whole_path", "What does @folder7/note-7.md say about backups?", 10)
        asking(database, "file_name", "What does @note-777.md say about backups?")
        asking(database, "title", 'What does @"Title 4711 of all" say about backups?')
        asking(database, "folder", "What does @folder7/ say about backups?")
        asking(database, "collection", "What does #notes say about backups?", 10)
        asking(database, "nothing", "What does @nobody say about backups?")
        for label, typed in (("one_letter", "n"), ("file_name", "note-77"), ("nothing", "zzz"), ("at_alone", "")):
            took(
                f"suggest_{label}",
                lambda session, typed=typed: suggesting.suggest(session, 1, typed, "document"),
                database,
            )
        database.close()


def fill(session: Session, count: int) -> None:
    """A collection of documents of one passage each."""
    now, rng = SystemClock().now(), random.Random(7)
    words = [f"word{number}" for number in range(3000)]
    place = collections.create_collection(session, 1, "Notes", "folder", "/notes", now)
    known = {
        "collection_id": place,
        "source": "folder",
        "mime": "text/markdown",
        "bytes": TEXT_CHARS,
        "status": "ready",
    }
    for number in range(count):
        text = " ".join(rng.choices(words, k=TEXT_CHARS // 8))
        path, title = f"folder{number % 200}/note-{number}.md", f"Title {number} of all"
        session.add(
            Document(
                **known, path=path, title=title, sha256=f"{number:064x}", text=text, created_at=now, updated_at=now
            )
        )
    session.flush()
    for document_id, title in session.query(Document.id, Document.title):
        session.add(
            Chunk(
                document_id=document_id,
                ordinal=0,
                heading="",
                text=title,
                char_start=0,
                char_end=len(title),
                line_start=1,
                line_end=1,
                sha256=f"{document_id:064x}",
            )
        )
    session.flush()
    fulltext.index(session, [row.id for row in session.query(Chunk.id)])


def asking(database: Database, label: str, question: str, limit: int | None = None) -> None:
    """Reads one question."""
    took(
        f"asked_{label}",
        lambda session: read_asked(session, 1, question, EVERYWHERE, (), date(2026, 12, 1)),
        database,
        limit,
    )


def took(label: str, work: Callable[[Session], object], database: Database, limit: int | None = None) -> None:
    """Prints the median."""
    times: list[float] = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        database.read(work)
        times.append((time.perf_counter() - begun) * 1000)
    print(f"naming_{label}_p50_ms {median(times):.2f} {limit or '-'}", flush=True)


if __name__ == "__main__":
    main()
