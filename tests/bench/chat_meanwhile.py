"""How soon an answer begins while a large watched folder is being taken in, beside the same turns at rest.

    python -m tests.bench.chat_meanwhile [--files N] [--kb N] [--questions N]

The server, the mock model and this reader are processes of their own. The library is the homelab corpus where it lies
beside the project, else Docent's own docs; the real embedder embeds questions, and the folder's passages behind them.
First every question is asked at rest, then again from the moment that N files (8,000) of so many kB (12) begin to be
read. Prints `name value limit`; 1 when a limit is missed, or when the folder was done before the questions were.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path

from tests.bench.live_folders import write_files
from tests.bench.stream_bench import Stream, fill, mock_model, one_by_one, percentile, questions
from tests.server import ServerProcess
from tests.waiting import until

RATIO = 1.5
WARM_UP = 3


def main() -> int:
    """Asks at rest and meanwhile, and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=8_000)
    parser.add_argument("--kb", type=int, default=12)
    parser.add_argument("--questions", type=int, default=80)
    options = parser.parse_args()
    asked = questions(options.questions + WARM_UP)
    with tempfile.TemporaryDirectory() as folder, mock_model(0) as mock:
        data, notes = Path(folder) / "data", Path(folder) / "notes"
        passages = fill(data)
        model = {"LLM_BASE_URL": f"{mock}/v1", "LLM_MODEL": "mock-model", "RETRIEVAL_MIN_SCORE": 0}
        rest = ask_all(data, asked, **model)
        write_files(notes, options.files, options.kb * 1000)
        busy, taken, left = ask_meanwhile(data, asked, WATCH_DIRS=notes, **model)
    at_rest, meanwhile = percentile(rest, 0.95), percentile(busy, 0.95)
    print(f"passages_at_rest {passages} -")
    print(f"questions {len(busy)} -")
    print(f"files_taken_in_meanwhile {taken} >= 1")
    print(f"files_left_afterwards {left} >= 1")
    print(f"first_delta_rest_p50_ms {percentile(rest, 0.5):.1f} -")
    print(f"first_delta_meanwhile_p50_ms {percentile(busy, 0.5):.1f} -")
    print(f"first_delta_rest_p95_ms {at_rest:.1f} -")
    print(f"first_delta_meanwhile_p95_ms {meanwhile:.1f} -")
    print(f"first_delta_meanwhile_max_ms {max(busy):.1f} -")
    print(f"first_delta_p95_times {meanwhile / at_rest:.2f} {RATIO}")
    return int(meanwhile > RATIO * at_rest or taken < 1 or left < 1)


def ask_all(data: Path, asked: list[str], **settings: object) -> list[float]:
    """Milliseconds to the first delta of each question but the first few, one after the other."""
    with ServerProcess(data, **settings) as server:
        streams = asyncio.run(one_by_one(server.url, asked))
        server.terminate()
    return times(streams)


def ask_meanwhile(data: Path, asked: list[str], **settings: object) -> tuple[list[float], int, int]:
    """As `ask_all`, from the moment that files are waiting; and how many were read meanwhile and how many were not."""
    with ServerProcess(data, **settings) as server:
        until(lambda: count(data, waiting=True) > 0, "files are waiting", 60)
        before = count(data, waiting=False)
        streams = asyncio.run(one_by_one(server.url, asked))
        taken, left = count(data, waiting=False) - before, count(data, waiting=True)
        server.terminate()
    return times(streams), taken, left


def times(streams: list[Stream]) -> list[float]:
    """Milliseconds to the first delta, without the first few."""
    return [stream.first_delta_s * 1000 for stream in streams[WARM_UP:]]


def count(data: Path, *, waiting: bool) -> int:
    """Documents that wait to be read, or those that were."""
    condition = "IN" if waiting else "NOT IN"
    with sqlite3.connect(f"file:{data / 'docent.db'}?mode=ro", uri=True) as database:
        query = f"SELECT count(*) FROM documents WHERE status {condition} ('queued', 'parsing')"
        return int(database.execute(query).fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
