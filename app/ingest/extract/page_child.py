"""The drawing child: `python -m app.ingest.extract.page_child`, one page and then it ends.

Started by `page_pictures`. The request comes on standard input as JSON, `{"file", "memory_bytes", "cpu_s", "asked"}`:
the number of an open file that was handed on, the limits, and `drawn.Asked`. The answer is one frame of `wire`
(`drawn.Drawn` without its `png`, or `{"error"}`) and behind it the PNG file. It opens nothing by name, and like
the extraction child it holds no secrets and gives up its rights before it looks at a stranger's file.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

import orjson

from app.ingest.errors import IngestError
from app.ingest.extract import sandbox
from app.ingest.extract.drawn import Asked
from app.ingest.extract.pdf_page import draw_page
from app.ingest.extract.wire import frame


def main() -> None:  # pragma: no cover - runs in the child, where coverage may not write
    """Reads the request, takes the limits on, and answers."""
    request = orjson.loads(sys.stdin.buffer.read())
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    sandbox.harden(request["memory_bytes"])
    sandbox.allow_cpu(request["cpu_s"])
    with os.fdopen(request["file"], "rb") as file:
        replies.write(answer(file, request["asked"]))
    replies.flush()


def answer(file: BinaryIO, asked: Mapping[str, Any]) -> bytes:
    """The bytes of the answer to one request."""
    support = asked["support"]
    page = Asked(asked["page"], asked["passage"], asked["first"], None if support is None else (support[0], support[1]))
    try:
        drawn = draw_page(file, page)
    except IngestError as error:
        return frame({"error": error.reason})
    except MemoryError:
        return frame({"error": "too_long"})
    head = {name: value for name, value in asdict(drawn).items() if name != "png"}
    return frame(head) + drawn.png


if __name__ == "__main__":  # pragma: no cover - as above
    main()
