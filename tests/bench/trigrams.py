"""What the trigram index finds and costs.

    python -m tests.bench.trigrams [--out FILE] [--rows N]

Finds: Chinese questions on Chinese paragraphs (XQuAD, each paragraph a document), by words alone: how often the right
one comes first, and among the first five. Costs: the size of the index beside the text and the word index, how long
indexing a passage takes with and without it, and how long filling it takes in a library of N passages (100,000) that
has none, with the longest single transaction. Prints `name value limit`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import text

from app.ingest.chunking import chunk
from app.ingest.extract.plain import extract_plain
from app.search import fulltext, grams
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database
from app.store.migrate import migrate
from tests.bench import search_library as library
from tests.bench.search_quality import NoEmbedder

XQUAD = library.SHARED / "ir" / "xquad" / "xquad.zh.json"
ROWS = 100_000
BATCH = 500


def main() -> int:
    """Runs all; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    if not XQUAD.is_file() or not library.HOMELAB.is_dir():
        print("the shared document sets are not here: nothing measured", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        results = [*chinese(Path(folder)), *costs(Path(folder)), *filling(Path(folder), arguments.rows)]
    for result in results:
        limit = "-" if result["limit"] is None else f"{result['sign']} {result['limit']}"
        print(result["name"], f"{result['value']:.4f}", limit)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(_is_missed(result) for result in results))


def chinese(folder: Path) -> Iterator[dict[str, Any]]:
    """How often the right paragraph comes first, and among the first five."""
    asked: list[tuple[str, str]] = []
    sources: list[library.Source] = []
    for article in json.loads(XQUAD.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            path = f"{len(sources)}.txt"
            sources.append(library.Source(path, path, chunk(extract_plain(paragraph["context"], "utf-8", path))))
            asked += [(qa["question"], path) for qa in paragraph["qas"]]
    database = _database(folder / "xquad.db")
    library.fill(database, sources, None)
    searcher = Searcher(database, NoEmbedder(), VectorIndex())
    started = time.perf_counter()
    found = [list(dict.fromkeys(hit.path for hit in searcher.search(q, user_id=1, k=12))) for q, _ in asked]
    took = (time.perf_counter() - started) / len(asked)
    database.close()
    firsts = [path in paths[:1] for paths, (_, path) in zip(found, asked, strict=True)]
    fives = [path in paths[:5] for paths, (_, path) in zip(found, asked, strict=True)]
    yield _result("xquad_zh_zh_recall1_words", sum(firsts) / len(firsts), 0.85)
    yield _result("xquad_zh_zh_recall5_words", sum(fives) / len(fives), None)
    yield _result("xquad_zh_zh_search_ms", took * 1000, None)


def costs(folder: Path) -> Iterator[dict[str, Any]]:
    """Sizes and speed on the homelab corpus."""
    database = _database(folder / "homelab.db")
    library.fill(database, library.homelab(), None)
    chunks = database.read(lambda session: session.execute(text("SELECT sum(length(CAST(text AS BLOB))) FROM chunks")))
    chars = chunks.scalar_one() / 2**20
    for name in ("chunks_fts", "chunks_grams"):
        size = text(f"SELECT sum(length(block)) FROM {name}_data")
        mib = database.read(lambda session, size=size: session.execute(size).scalar_one()) / 2**20
        yield _result(f"homelab_{name}_share_of_text", mib / chars, None)
    for name in ("chunks_fts", "chunks_grams"):
        rebuild = text(f"INSERT INTO {name}({name}) VALUES ('rebuild')")
        started = time.process_time()
        database.write(lambda session, rebuild=rebuild: session.execute(rebuild))
        yield _result(f"homelab_{name}_cpu_s_per_mib", (time.process_time() - started) / chars, None)
    database.close()


def filling(folder: Path, rows: int) -> Iterator[dict[str, Any]]:
    """How long it takes to fill the index of a library that has none."""
    database = _database(folder / "filling.db")
    sources = list(library.homelab())
    stored = 0
    while stored < rows:
        again = (library.Source(f"{stored}/{one.path}", one.title, one.chunks) for one in sources)
        stored += library.fill(database, again, None)
    database.write(lambda session: session.execute(text("INSERT INTO chunks_grams(chunks_grams) VALUES('delete-all')")))
    longest, started = 0.0, time.perf_counter()
    while True:
        began = time.perf_counter()
        left = database.write(lambda session: grams.backfill(session, BATCH))
        longest = max(longest, time.perf_counter() - began)
        if not left:
            break
    yield _result(f"fill_{rows}_s", time.perf_counter() - started, None)
    yield _result(f"fill_{rows}_longest_write_ms", longest * 1000, 500.0, "<=")
    database.write(fulltext.check)
    database.close()


def _database(path: Path) -> Database:
    database = Database(f"sqlite:///{path}")
    migrate(database)
    return database


def _result(name: str, value: float, limit: float | None, sign: str = ">=") -> dict[str, Any]:
    return {"name": name, "value": value, "limit": limit, "sign": sign}


def _is_missed(result: dict[str, Any]) -> bool:
    if result["limit"] is None:
        return False
    return result["value"] < result["limit"] if result["sign"] == ">=" else result["value"] > result["limit"]


if __name__ == "__main__":
    sys.exit(main())
