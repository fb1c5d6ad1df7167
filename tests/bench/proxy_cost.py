"""What `/v1` costs beside asking the model server directly: time to the first byte, processor time per token.

    python -m tests.bench.proxy_cost [--requests 200] [--streams 8]

Prints `name value limit`; 1 when a limit is missed. The mock, Docent and the client are three processes, and the client
is the same for both ways: a kept connection that asks directly and through Docent in turn, ten messages each time. The
processor's time is that of all three, so what Docent adds is the difference of two runs of the same streams; `pipe` is
a program that only copies bytes, measured the same way, which is what this machine charges for being in between.
"""

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.bench.stream_bench import mock_model
from tests.e2e.mock_flows import SLOW_WORDS
from tests.server import ROOT, ServerProcess, free_port
from tests.waiting import until

FIRST_BYTE_LIMIT_MS = 3.0
CPU_LIMIT_US = 100.0
RATE = 200.0
TOKENS = SLOW_WORDS + 1
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


def main() -> int:
    """Measures both; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--streams", type=int, default=8)
    options = parser.parse_args()
    figures: list[tuple[str, float, float | None]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        mock_model(RATE) as mock,
        ServerProcess(Path(folder) / "data", LLM_BASE_URL=f"{mock}/v1") as docent,
    ):
        assert docent.process is not None
        figures += first_bytes(mock, docent.url, options.requests)
        processes = [docent.process.pid, listening_pid(mock)]
        with bare_pipe(mock) as (pipe, pid):
            one = [pid, processes[1]]
            figures += [
                (name, value, None) for name, value, _ in per_token(mock, pipe, one, options.streams, "pipe", None)
            ]
        for name, tools in (("filtered", None), ("with_tools", TOOLS)):
            figures += per_token(mock, docent.url, processes, options.streams, name, tools)
    for name, value, limit in figures:
        print(name, round(value, 3), "-" if limit is None else limit, flush=True)
    return int(any(limit is not None and value > limit for _, value, limit in figures))


def first_bytes(mock: str, docent: str, requests: int) -> list[tuple[str, float, float | None]]:
    """Medians of the time from the request to the first byte of the stream's body."""
    ways = {"direct": connection(mock), "through": connection(docent)}
    body = request_of("How long are backups kept?", None, messages=10)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(requests + 20):
        for way, link in ways.items():
            took = first_byte_ms(link, body)
            if number >= 20:  # the first ones open connections
                times[way].append(took)
    for link in ways.values():
        link.close()
    direct, through = (statistics.median(times[way]) for way in ("direct", "through"))
    return [
        ("first_byte_direct_p50_ms", direct, None),
        ("first_byte_through_p50_ms", through, None),
        ("first_byte_added_p50_ms", through - direct, FIRST_BYTE_LIMIT_MS),
    ]


def first_byte_ms(link: http.client.HTTPConnection, body: bytes) -> float:
    """One streamed request, read to its end."""
    began = time.perf_counter()
    link.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    reply = link.getresponse()
    assert reply.status == 200
    assert reply.read(1)
    took = (time.perf_counter() - began) * 1000
    reply.read()
    return took


def per_token(
    mock: str, docent: str, processes: Sequence[int], streams: int, name: str, tools: Any
) -> list[tuple[str, float, float | None]]:
    """Processor time of all processes for the same paced streams, directly and through Docent; the rounds alternate."""
    body = request_of("e2e-slow", tools, messages=1)
    costs: dict[str, list[float]] = {mock: [], docent: []}
    for _ in range(3):
        for url in (mock, docent):
            before = cpu_s(processes)
            run_streams(url, body, streams)
            costs[url].append(cpu_s(processes) - before)
    added = statistics.median(costs[docent]) - statistics.median(costs[mock])
    return [(f"cpu_per_token_{name}_us", added / (streams * TOKENS) * 1e6, CPU_LIMIT_US)]


def run_streams(url: str, body: bytes, streams: int) -> None:
    """So many at once, each read as it comes."""

    def run() -> None:
        link = connection(url)
        link.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        reply = link.getresponse()
        seen = 0
        while part := reply.read1():
            seen += part.count(b'"content"')
        link.close()
        assert seen >= TOKENS, f"{seen} tokens of {TOKENS}"

    readers = [threading.Thread(target=run) for _ in range(streams)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


@contextmanager
def bare_pipe(mock: str) -> Generator[tuple[str, int]]:
    """A running pipe to the mock: its address and process."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.bare_pipe", str(port), str(urlsplit(mock).port)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        until(lambda: is_open(port), "the pipe listens")
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def cpu_s(processes: Sequence[int]) -> float:
    """Processor seconds of this process and the given ones, all threads, to the nanosecond."""
    threads = [path for pid in processes for path in Path(f"/proc/{pid}/task").iterdir()]
    others = sum(int((path / "schedstat").read_text().split()[0]) for path in threads)
    return others / 1e9 + time.process_time()


def listening_pid(url: str) -> int:
    """The process that serves `url`: the one whose command names its port."""
    port = str(urlsplit(url).port)
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            command = (path / "cmdline").read_bytes().split(b"\0") if (path / "cmdline").exists() else []
            if b"tests.e2e.mock_llm" in command and port.encode() in command:
                return int(path.name)
    raise AssertionError("the mock is not running")


def connection(url: str) -> http.client.HTTPConnection:
    """A kept connection."""
    parts = urlsplit(url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)


def request_of(question: str, tools: Any, *, messages: int) -> bytes:
    """A streamed request of so many messages, the last one the question."""
    past = [
        {"role": ("user", "assistant")[at % 2], "content": f"What was said {at}. " * 20} for at in range(messages - 1)
    ]
    body = {"model": "mock-model", "messages": [*past, {"role": "user", "content": question}], "stream": True}
    return json.dumps({**body, **({"tools": tools} if tools else {})}).encode()


if __name__ == "__main__":
    sys.exit(main())
