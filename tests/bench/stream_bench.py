"""Turns against the mock model, over real sockets with real processes: start, idle memory, first delta, 100 streams.

    python -m tests.bench.stream_bench [--streams 100] [--rate 20] [--questions 60] [--out FILE] [--skip-streams]

Prints `name value limit`; 1 when a limit is missed. Three processes share the machine: the server, the mock, and this
one, which reads the streams. The library is the homelab corpus where it lies beside the project, else Docent's own
docs; passages are embedded once and kept under `data/bench`.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from app.ingest.chunking import chunk
from app.ingest.extract.markdown import extract_markdown
from app.store.engine import Database
from app.store.migrate import migrate
from tests.bench import search_library as library
from tests.bench.embedding_cache import CachedEmbedder
from tests.server import ROOT, ServerProcess, free_port
from tests.sse import Decoder, Frame

OWN_QUESTIONS = ["How do I start Docent?", "Where is the data kept?", "What does a turn's line say?"]


@dataclass
class Result:
    """One figure and what it may be at most."""

    name: str
    value: float
    limit: float | None = None


@dataclass
class Stream:
    """One turn as its reader saw it: frames with the moment each arrived (monotonic seconds)."""

    question: str
    sent_at: float = 0.0
    frames: list[tuple[float, Frame]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(frame.data["text"] for _, frame in self.frames if frame.event == "delta")

    @property
    def first_delta_s(self) -> float:
        return next(at for at, frame in self.frames if frame.event == "delta") - self.sent_at


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--skip-streams", action="store_true")
    options = parser.parse_args()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        chunks = fill(data)
        results += start_and_rest(data)
        with mock_model(options.rate) as paced, mock_model(0) as quick:
            results += first_delta(data, quick, chunks, options.questions)
            if not options.skip_streams:
                results += many_streams(data, paced, options.streams, options.rate)
    for result in results:
        print(result.name, round(result.value, 3), "-" if result.limit is None else result.limit, flush=True)
    if options.out:
        rows = [{"name": one.name, "value": one.value, "limit": one.limit} for one in results]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(one.limit is not None and one.value > one.limit for one in results))


def fill(data: Path) -> int:
    """Makes the library; returns its passages."""
    data.mkdir()
    database = Database(f"sqlite:///{data / 'docent.db'}")
    migrate(database)
    embedder = CachedEmbedder()
    sources: Iterable[library.Source] = library.homelab() if library.HOMELAB.is_dir() else own_docs()
    count = library.fill(database, sources, embedder)
    database.close()
    return count


def own_docs() -> Iterable[library.Source]:
    """This project's own documentation."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        extraction = extract_markdown(path.read_text(encoding="utf-8"), "utf-8")
        yield library.Source(str(path.relative_to(ROOT)), extraction.title or path.stem, chunk(extraction))


def questions(count: int) -> list[str]:
    """Real questions on the library, each once."""
    asked = [one["question"] for one in library.questions()] if library.HOMELAB.is_dir() else OWN_QUESTIONS
    return [f"{asked[n % len(asked)]}{' again' * (n // len(asked))}" for n in range(count)]


def start_and_rest(data: Path) -> list[Result]:
    """Start to the first answer of `/healthz` (the best of five, the first being cold), memory after a while idle."""
    times: list[float] = []
    for _ in range(5):
        with ServerProcess(data) as server:
            times.append(server.started_s)
            server.terminate()
    with ServerProcess(data) as server:
        time.sleep(5)
        assert server.process is not None
        top = psutil.Process(server.process.pid)
        rss = sum(process.memory_info().rss for process in (top, *top.children(recursive=True)))
        server.terminate()
    return [
        Result("start_to_healthz_s", statistics.median(times[1:]), 2),
        Result("idle_rss_mb", rss / 1e6, 150),
    ]


@contextmanager
def mock_model(rate: float) -> Generator[str]:
    """The mock as a process of its own; yields its base address, without `/v1`."""
    port = free_port()
    command = [sys.executable, "-m", "tests.e2e.mock_llm", "--port", str(port), "--rate", str(rate)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                get(f"http://127.0.0.1:{port}/v1/models")
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.loads(reply.read())


def first_delta(data: Path, mock: str, chunks: int, count: int) -> list[Result]:
    """From the question to its first delta, less what the mock itself takes for the same prompt."""
    asked = questions(count + 3)
    with ServerProcess(data, LLM_BASE_URL=f"{mock}/v1", LLM_MODEL="mock-model", RETRIEVAL_MIN_SCORE=0) as server:
        streams = asyncio.run(one_by_one(server.url, asked))[3:]
        server.terminate()
    bodies = [record["body"] for record in get(f"{mock}/__requests")["requests"]][3:]
    direct = asyncio.run(ask_directly(mock, bodies))
    through = [stream.first_delta_s * 1000 for stream in streams]
    more = [docent - mock for docent, mock in zip(through, direct, strict=True)]
    assert all(stream.frames[0][1].data["mode"] == "grounded" for stream in streams)
    return [
        Result("passages", chunks),
        Result("first_delta_p50_ms", statistics.median(through)),
        Result("first_delta_direct_p50_ms", statistics.median(direct)),
        Result("first_delta_more_p50_ms", statistics.median(more), 40),
        Result("first_delta_more_p95_ms", percentile(more, 0.95)),
    ]


async def one_by_one(url: str, asked: list[str]) -> list[Stream]:
    return [await read(url, question) for question in asked]


async def ask_directly(mock: str, bodies: list[dict[str, Any]]) -> list[float]:
    """Milliseconds to the first token of each prompt, asked without Docent."""
    times: list[float] = []
    for body in bodies:
        began = time.monotonic()
        reader, writer = await post(mock, "/v1/chat/completions", body)
        while b'"content":' not in await reader.readline():
            pass
        times.append((time.monotonic() - began) * 1000)
        writer.close()
    return times


def many_streams(data: Path, mock: str, count: int, rate: float) -> list[Result]:
    """`count` streams at `rate` tokens a second: how late tokens come, and whether the rows say what was shown."""
    with ServerProcess(data, LLM_BASE_URL=f"{mock}/v1", LLM_MODEL="mock-model") as server:
        asyncio.run(one_by_one(server.url, ["warm up", "and again"]))
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        before, began = sum(process.cpu_times()[:2]), time.monotonic()
        streams = asyncio.run(all_at_once(server.url, count))
        busy = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)
        stored = {int(s.frames[-1][1].data["message_id"]): s for s in streams if s.frames[-1][1].event == "done"}
        differing = 0
        for chat in range(1, count + 3):
            for message in get(f"{server.url}/api/chats/{chat}")["messages"]:
                shown = stored.get(message["id"])
                if shown is not None:
                    differing += differing_bytes(shown.text, message["content"])
        server.terminate()
        errors = server.log().count(" ERROR ")
    begun = {
        record["body"]["messages"][-1]["content"]: record["first_at"]
        for record in get(f"{mock}/__requests")["requests"]
    }
    lags = [lag for stream in streams for lag in lags_of(stream, begun[stream.question], rate)]
    return [
        Result("streams", len(streams)),
        Result("streams_lost", count - len(stored), 0),
        Result("stream_lag_p50_ms", percentile(lags, 0.5)),
        Result("stream_lag_p95_ms", percentile(lags, 0.95), 50),
        Result("stream_lag_max_ms", max(lags)),
        Result("stream_server_cpu_share", busy),
        Result("stream_bytes_differing", differing, 0),
        Result("stream_error_lines", errors, 0),
    ]


async def all_at_once(url: str, count: int) -> list[Stream]:
    async def later(number: int) -> Stream:
        await asyncio.sleep(number * 0.05)
        return await read(url, f"e2e-slow stream {number}", without_documents=True)

    return await asyncio.gather(*(later(number) for number in range(count)))


def lags_of(stream: Stream, begun: float, rate: float) -> list[float]:
    """Milliseconds that each token came after the mock's schedule: the n-th is due `n / rate` after the first."""
    lags: list[float] = []
    for at, frame in stream.frames:
        if frame.event == "delta":
            for _ in frame.data["text"].split():
                lags.append((at - begun - len(lags) / rate) * 1000)
    return lags


def differing_bytes(shown: str, stored: str) -> int:
    left, right = shown.encode(), stored.encode()
    return abs(len(left) - len(right)) + sum(a != b for a, b in zip(left, right, strict=False))


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def read(url: str, question: str, **more: Any) -> Stream:
    """Asks, and reads the stream to its end."""
    stream = Stream(question)
    decoder = Decoder()
    body = {"message": question, "client_key": f"{time.monotonic_ns()}-{question[:60]}", **more}
    stream.sent_at = time.monotonic()
    reader, writer = await post(url, "/api/chat", body)
    async for data in chunks_of(reader):
        now = time.monotonic()
        stream.frames += [(now, frame) for frame in decoder.feed(data)]
    writer.close()
    return stream


async def chunks_of(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    """The chunks of a chunked body."""
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:size]


async def post(url: str, path: str, body: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Sends a request on a connection of its own; returns once the head of the answer was read."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"{status!r}: {await reader.read()!r}")
    while (await reader.readline()).strip():
        pass
    return reader, writer


if __name__ == "__main__":
    sys.exit(main())
