"""What files made to hurt do to a running Docent.

    python -m tests.bench.monsters

Uploads every file of `tests.bench.monster_files` to a server process with the built-in embedder and lets it work
through them, while `/healthz` is asked five times a second and an ordinary note is uploaded and searched for between.
Counts restarts of the app, documents whose time was over the limit, those that ended neither ready nor with a reason a
person is told, and reports how long `/healthz` took. Prints `name value limit`; fails where a limit is missed.
"""

import json
import re
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.bench.ingest_speed import is_kept
from tests.bench.monster_files import monsters
from tests.server import ServerProcess
from tests.waiting import until

LIMIT_S = 60.0
GRACE_S = 2.0
LONG_S = 1800.0
LINE = re.compile(r" document id=(\d+) .*? status=(\w+) reason=(\S+) .*? extract_ms=(\d+)")

Figure = tuple[str, float, str]


@dataclass
class Health:
    """Asks `/healthz` until told to stop: how long each answer took, and how large the app was at most."""

    server: ServerProcess
    took_s: list[float] = field(default_factory=list[float])
    peak_mb: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """The thread's work."""
        assert self.server.process is not None
        process = psutil.Process(self.server.process.pid)
        while not self._over.wait(0.2):
            started = time.monotonic()
            with urllib.request.urlopen(f"{self.server.url}/healthz", timeout=30) as response:
                assert response.status == 200
            self.took_s.append(time.monotonic() - started)
            self.peak_mb = max(self.peak_mb, process.memory_info().rss / 1e6)

    def stop(self) -> None:
        """No more."""
        self._over.set()


def main() -> int:
    """Measures, prints, and returns 1 when a limit is missed."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data") as server:
        paths = monsters(Path(folder) / "monsters")
        health = Health(server)
        watching = threading.Thread(target=health.run)
        watching.start()
        try:
            ids = {upload(server, path): path.name for path in paths}
            until(lambda: is_over(server), "every monster is read or refused", LONG_S, step_s=1.0)
            found_after = search_for_note(server)
        finally:
            health.stop()
            watching.join()
        assert server.process is not None
        is_up = server.process.poll() is None
        judge(figures, server.log(), ids)
        took = sorted(health.took_s)
        note(figures, "restarts", 0.0 if is_up else 1.0, "<= 0")
        note(figures, "healthz_ms_p95", took[int(len(took) * 0.95)] * 1000, "<= 200")
        note(figures, "healthz_ms_max", took[-1] * 1000, "-")
        note(figures, "app_mb_peak", health.peak_mb, "-")
        note(figures, "note_after_them_s", found_after, "<= 5")
    missed = [name for name, value, limit in figures if limit != "-" and not is_kept(value, limit)]
    print("missed: " + ", ".join(missed) if missed else "all limits kept")
    return bool(missed)


def judge(figures: list[Figure], log: str, ids: dict[int, str]) -> None:
    """From the documents' own lines: what each came to, and how long it was read."""
    lines = {int(match[1]): match for match in LINE.finditer(log)}
    seconds = {number: int(match[4]) / 1000 for number, match in lines.items() if number in ids}
    for number, match in sorted(lines.items(), key=lambda pair: -int(pair[1][4])):
        if number in ids:
            print(f"# {ids[number]}: {match[2]} {match[3]} {int(match[4]) / 1000:.2f} s")
    named = [
        number for number in ids if number in lines and (lines[number][2] != "failed" or is_named(lines[number][3]))
    ]
    note(figures, "monsters", len(ids), ">= 40")
    note(figures, "ended_unnamed", len(ids) - len(named), "<= 0")
    note(figures, "over_limit", sum(value > LIMIT_S + GRACE_S for value in seconds.values()), "<= 0")
    note(figures, "slowest_s", max(seconds.values()), f"<= {LIMIT_S + GRACE_S:.0f}")


def is_named(reason: str) -> bool:
    """Whether a reason is one of the file's and not a fault of Docent's."""
    return reason not in ("-", "internal")


def upload(server: ServerProcess, path: Path) -> int:
    """The new document's id."""
    boundary = "monster-boundary"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{path.name}"\r\n\r\n'
    body = head.encode() + path.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}/api/documents", body, kind), timeout=60) as reply:
        return int(json.loads(reply.read())["documents"][0]["id"])


def is_over(server: ServerProcess) -> bool:
    """Whether nothing waits to be read; vectors may still be missing."""
    return not any(
        server.request("GET", f"/api/documents?status={status}&limit=1")[1]["documents"]
        for status in ("queued", "parsing")
    )


def search_for_note(server: ServerProcess) -> float:
    """Seconds from uploading an ordinary note to finding it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "note.md"
        path.write_text("# After the monsters\n\nThe lighthouse still stands.\n")
        number = upload(server, path)

    def is_found() -> bool:
        _, answer = server.request("POST", "/api/search", {"query": "lighthouse stands"})
        return any(hit["document_id"] == number for hit in answer["hits"])

    until(is_found, "the note is found", 60)
    return time.monotonic() - started


def note(figures: list[Figure], name: str, value: float, limit: str) -> None:
    """Prints a figure as it comes."""
    figures.append((name, float(value), limit))
    print(f"{name} {value:.2f} {limit}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
