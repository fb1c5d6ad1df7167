"""What the loop guard costs a request: one scan of a long conversation, and the check of streamed text.

    python -m tests.bench.guard_scan [--runs N]

Prints `name value limit`. Each conversation has 500 calls and no user message after the first, so that every one of
them is judged: single calls without results, and batches of five with four results each (500 messages, the limit is for
these); single calls with a result each (1,000 messages), and these again, but always the same call with results that
move. The median of the runs counts.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from app.guard.detectors import Limits
from app.guard.runaway import RunawayCheck
from app.guard.scan import scan

LIMIT_MS = 8.0
RUNAWAY_CHARS = 200_000
PIECE = 4
WORDS = ("pump", "valve", "restore", "backup", "the", "a", "of", "fuse", "door", "level", "check", "after", "before")

Message = dict[str, Any]


def main() -> int:
    """Measures every shape; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=41)
    options = parser.parse_args()
    rng = random.Random(4)
    shapes = {
        "single": [asking(rng, at, 1, at) for at in range(500)],
        "batches": [one for at in range(100) for one in (asking(rng, at, 5, at), *answering(rng, at, 4))],
        "answered": [one for at in range(500) for one in (asking(rng, at, 1, at), *answering(rng, at, 1))],
        "moving": [one for at in range(500) for one in (asking(rng, at, 1, 0), *answering(rng, at, 1))],
    }
    missed = False
    for name, messages in shapes.items():
        conversation = [{"role": "user", "content": "Which valve closes the pump room?"}, *messages]
        verdict = scan(conversation, Limits(), mode="note")
        assert verdict.scanned
        took = median_ms(lambda conversation=conversation: scan(conversation, Limits(), mode="note"), options.runs)
        limit = LIMIT_MS if len(messages) == 500 else None
        missed = missed or (limit is not None and took > limit)
        print(f"scan_{name}_ms", f"{took:.3f}", "-" if limit is None else limit)
    text = prose(rng, RUNAWAY_CHARS)
    print("runaway_ns_per_char", f"{median_ms(lambda: stream(text), 5) * 1e6 / RUNAWAY_CHARS:.1f}", "-")
    return int(missed)


def asking(rng: random.Random, turn: int, calls: int, version: int) -> Message:
    """A reply that calls tools; the arguments repeat where `version` does."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {
                    "name": rng.choice(("write_file", "run_tests")) if version else "write_file",
                    "arguments": json.dumps(
                        {
                            "path": f"src/part_{version}/file_{at}.py",
                            "from": 120 + version,
                            "text": "a line of text " * 6,
                        }
                    ),
                },
            }
            for at in range(calls)
        ],
    }


def answering(rng: random.Random, turn: int, results: int) -> list[Message]:
    """Results of about 1,000 characters each, no two alike."""
    return [
        {"role": "tool", "tool_call_id": f"call_{turn}_{at}", "content": f"{turn} {prose(rng, 1_000)}"}
        for at in range(results)
    ]


def prose(rng: random.Random, chars: int) -> str:
    """Words in no order."""
    return " ".join(rng.choices(WORDS, k=chars // 5))[:chars]


def stream(text: str) -> None:
    """The text in pieces as a model sends them."""
    check = RunawayCheck()
    for at in range(0, len(text), PIECE):
        if check.feed(text[at : at + PIECE]):
            raise AssertionError("prose without repetition counts as run away")


def median_ms(work: Callable[[], object], runs: int) -> float:
    """The median time of a piece of work."""
    times: Sequence[float] = [timed(work) for _ in range(runs)]
    return statistics.median(times)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds one run takes."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


if __name__ == "__main__":
    sys.exit(main())
