"""How fast search answers, and what embedding costs in memory.

    python -m tests.bench.search_speed [--out FILE] [--rows N …] [--questions N]

Measures the whole of `Searcher.search`, query embedding included, with the homelab questions: over the homelab corpus
repeated up to about 7,000 chunks, and over 100,000 rows made of it (sentences of real chunks shuffled together, vectors
of real chunks moved a little). Then the peak memory of a fresh process that embeds passages. Prints `name value limit`.
"""

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.ingest.chunking import ChunkDraft, embedded_text
from app.search.embeddings import FloatMatrix
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database
from app.store.migrate import migrate
from tests.bench import search_library as library
from tests.bench.embedding_cache import CachedEmbedder

LIMITS_MS = {7_000: 25.0, 100_000: 60.0}
RSS_LIMIT_MB = 420.0
PER_DOCUMENT = 20
SPREAD = 0.3
"""How far a made vector lies from the real one it comes from: a cosine of about 0.96."""

_MEMORY = """
import json, re, sys
from app.search.builtin import BuiltinEmbedder
BuiltinEmbedder().embed_passages(json.load(sys.stdin))
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024 / 1e6)
"""
"""Run in a process of its own, with nothing else in memory. (`ru_maxrss` would count the parent's memory too.)"""


class _MadeEmbedder(CachedEmbedder):
    """Real vectors for real texts and for questions, made ones for made texts."""

    def __init__(self, real: dict[str, int], matrix: FloatMatrix) -> None:
        super().__init__()
        self._real = real
        self._matrix = matrix
        self._random = np.random.default_rng(5)

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """A row per text."""
        places = [self._real.get(text, None) for text in texts]
        chosen = [place if place is not None else int(self._random.integers(len(self._matrix))) for place in places]
        matrix = self._matrix[chosen].copy()
        made = [row for row, place in enumerate(places) if place is None]
        noise = self._random.standard_normal((len(made), self.dim)).astype(np.float32)
        matrix[made] += SPREAD * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def main() -> int:
    """Runs every size and the memory measurement; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=list(LIMITS_MS))
    parser.add_argument("--questions", type=int, default=300, help="how many timed searches per size")
    arguments = parser.parse_args()
    if not library.HOMELAB.is_dir():
        print("the homelab corpus is not here: nothing measured", file=sys.stderr)
        return 1
    results: list[dict[str, Any]] = []
    sources = list(library.homelab())
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as folder:
            results += measure(Path(folder), sources, rows, arguments.questions)
    results.append({"name": "embedding_peak_rss_mb", "value": peak_memory(sources), "limit": RSS_LIMIT_MB})
    for result in results:
        print(result["name"], f"{result['value']:.1f}", result["limit"] if result["limit"] is not None else "-")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["limit"] is not None and result["value"] > result["limit"] for result in results))


def peak_memory(sources: Sequence[library.Source]) -> float:
    """Megabytes of a process that embeds the hundred longest passages."""
    texts = [embedded_text(source.title, draft.heading, draft.text) for source in sources for draft in source.chunks]
    longest = json.dumps(sorted(texts, key=len)[-100:])
    command = [sys.executable, "-c", _MEMORY]
    return float(subprocess.run(command, input=longest, capture_output=True, text=True, check=True).stdout)


def measure(folder: Path, sources: Sequence[library.Source], rows: int, searches: int) -> list[dict[str, Any]]:
    """Median and 95th percentile over `rows` chunks, and the first search, which loads model and matrix."""
    texts = [embedded_text(source.title, draft.heading, draft.text) for source in sources for draft in source.chunks]
    matrix = CachedEmbedder().embed_passages(texts)
    embedder = _MadeEmbedder({text: place for place, text in enumerate(texts)}, matrix)
    database = Database(f"sqlite:///{folder / 'speed.db'}")
    migrate(database)
    stored = library.fill(database, [*sources, *_made(sources, rows - len(texts))], embedder)
    searcher = Searcher(database, embedder, VectorIndex())
    questions = [question["question"] for question in library.questions()]
    first, _ = _timed(searcher, questions[0])
    for question in questions:
        _timed(searcher, question)
    timed = [_timed(searcher, questions[number % len(questions)]) for number in range(searches)]
    times, cpu_times = sorted(wall for wall, _ in timed), sorted(cpu for _, cpu in timed)
    database.close()
    name = f"search_{rows}"
    return [
        {"name": f"{name}_rows", "value": float(stored), "limit": None},
        {"name": f"{name}_first_ms", "value": first, "limit": None},
        {"name": f"{name}_p50_ms", "value": times[len(times) // 2], "limit": None},
        {"name": f"{name}_p95_ms", "value": times[int(len(times) * 0.95)], "limit": LIMITS_MS.get(rows)},
        {"name": f"{name}_p50_cpu_ms", "value": cpu_times[len(times) // 2], "limit": None},
        {"name": f"{name}_p95_cpu_ms", "value": cpu_times[int(len(times) * 0.95)], "limit": None},
    ]


def _timed(searcher: Searcher, question: str) -> tuple[float, float]:
    """Milliseconds by the wall clock, and of this thread's processor time: what a machine with nothing else to do
    would take."""
    wall, cpu = time.perf_counter(), time.thread_time()
    searcher.search(question, user_id=1, k=12)
    return (time.perf_counter() - wall) * 1000, (time.thread_time() - cpu) * 1000


def _made(sources: Sequence[library.Source], count: int) -> Iterator[library.Source]:
    """`count` chunks of real sentences in a new order, in documents of `PER_DOCUMENT`."""
    chance = random.Random(11)
    drafts = [draft for source in sources for draft in source.chunks]
    sentences = [sentence for draft in drafts for sentence in draft.text.split(". ")]
    for start in range(0, max(0, count), PER_DOCUMENT):
        chunks: list[ChunkDraft] = []
        for number in range(min(PER_DOCUMENT, count - start)):
            like = chance.choice(drafts)
            text = ""
            while len(text) < len(like.text):
                text += chance.choice(sentences) + ". "
            sha256 = hashlib.sha256(f"{start} {number} {text}".encode()).hexdigest()
            chunks.append(replace(like, ordinal=number, text=text, sha256=sha256))
        yield library.Source(f"made/{start}.md", f"Made {start}", chunks)


if __name__ == "__main__":
    raise SystemExit(main())
