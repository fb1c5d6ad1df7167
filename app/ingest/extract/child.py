"""The extraction child: `python -m app.ingest.extract.child '{"memory_bytes": …}'`, frames on its pipes.

Started by `extractor`. It extracts and chunks one document at a time until its standard input ends. It imports no
server, database or settings, so that it starts fast and holds no secrets.
"""

import gc
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from app.ingest.chunking import chunk
from app.ingest.errors import IngestError
from app.ingest.extract import sandbox
from app.ingest.extract.dispatch import SizeLimits, extract, picture_of
from app.ingest.extract.wire import HEADER_BYTES, frame, pack, pack_picture, payload_size, unpack_lines

_PROGRESS_S = 0.2
_RECYCLE_KIB = 320 * 1024
"""Peak memory after which the process makes room for a fresh one."""

Send = Callable[[dict[str, Any]], None]


def main() -> None:  # pragma: no cover - runs in the child, where coverage may not write
    """Takes the limits from the command line, gives up every right it can, and serves."""
    options = orjson.loads(sys.argv[1])
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    # A library that prints must not write into the frames.
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    gc.freeze()
    gc.set_threshold(50_000)
    sandbox.harden(options["memory_bytes"])
    serve(requests, replies, SizeLimits(options["max_bytes"], options["max_chars"]))


def peak_kib() -> int:
    """This process's peak memory in KiB. Not `ru_maxrss` where it can be had otherwise: that one is inherited from the
    process that forked, so a child of an app which holds a model in memory would count as full from the start."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def serve(
    requests: BinaryIO,
    replies: BinaryIO,
    limits: SizeLimits,
    allow_cpu: Callable[[float], None] = sandbox.allow_cpu,
    peak: Callable[[], int] = peak_kib,
) -> None:
    """Answers requests until they end, or until this process has grown too big to keep (`peak`, KiB)."""

    def send(message: dict[str, Any]) -> None:
        data = memoryview(frame(message))
        while data:
            data = data[replies.write(data) :]

    while len(header := requests.read(HEADER_BYTES)) == HEADER_BYTES:
        request = orjson.loads(requests.read(payload_size(header)))
        send({"began": True})
        allow_cpu(request["cpu_s"])
        reply = answer(request, limits, send)
        reply["last"] = bool(reply.get("last")) or peak() > _RECYCLE_KIB
        send(reply)
        if reply["last"]:
            return


def answer(request: dict[str, Any], limits: SizeLimits, send: Send) -> dict[str, Any]:
    """The final message for one request; never raises."""
    try:
        path = Path(os.fsdecode(bytes.fromhex(request["path"])))
        if "picture" in request:
            return pack_picture(picture_of(path, request["picture"]))
        recognised = {int(page): unpack_lines(lines) for page, lines in request.get("recognised", {}).items()}
        extraction = extract(path, request["name"], limits, _progress(send), recognised, request.get("charset"))
        chunks = chunk(extraction)
        return pack(extraction, chunks) if len(chunks) <= limits.max_chunks else {"error": "too_long"}
    except IngestError as error:
        return {"error": error.reason}
    except MemoryError:
        return {"error": "too_long", "last": True}
    except RecursionError:
        return {"error": "corrupt"}
    except Exception as error:  # noqa: BLE001 - the child's edge: one document's crash is an answer, not an exit
        place = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        return {"error": "internal", "detail": detail}


def _progress(send: Send) -> Callable[[int, int], None]:
    due = time.monotonic() + _PROGRESS_S

    def on_page(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _PROGRESS_S
            send({"page": done, "pages": total})

    return on_page


if __name__ == "__main__":  # pragma: no cover - as above
    main()
