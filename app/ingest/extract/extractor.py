"""The app's side of extraction: one recycled child process, asked for one document at a time.

Called by `app.ingest.pipeline`. It owns the wall clock, the restart, and what a child's death means; it parses nothing.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.ingest.blocks import Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.errors import REASONS, ExtractorClosedError, IngestError, IngestReason
from app.ingest.extract import wire
from app.ingest.extract.pdf_lines import PageImage
from app.ingest.extract.pipes import Child, ChildGone
from app.logs import kv

_log = logging.getLogger("app.ingest")

OnPage = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may use. `cpu_s` and `wall_s` are seconds; `max_chars` is of the canonical text."""

    memory_bytes: int = 1 << 30
    cpu_s: float = 60
    wall_s: float = 60
    max_bytes: int = 512 << 20
    max_chars: int = 40_000_000
    documents_per_child: int = 500


class Extractor:
    """Extracts documents in a child process that starts with the first one and is kept while it behaves.

    Thread-safe: callers wait for each other. `close` may come from any thread at any time.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_closed = False

    def extract(
        self,
        path: Path,
        name: str,
        on_page: OnPage | None = None,
        recognised: Mapping[int, Mapping[str, Any]] | None = None,
        charset: str | None = None,
    ) -> tuple[Extraction, list[ChunkDraft]]:
        """Reads and chunks the file at `path`. `name` is what its owner calls it; only its suffix counts.

        `on_page(done, total)` is called now and then while a long PDF is read. `recognised` holds lines found in
        pictures of a PDF's pages (`wire.pack_lines`), by index from 0; `charset` is what a server called a text's
        encoding.

        Raises:
            IngestError: with the reason; at the latest about a second after `limits.wall_s`.
            ExtractorClosedError: after `close`.
        """
        asked: dict[str, Any] = {"name": name.encode("utf-8", "replace").decode()}
        pages = {str(index): lines for index, lines in (recognised or {}).items()}
        beside = {"recognised": pages, "charset": charset}
        asked |= {key: value for key, value in beside.items() if value}
        return wire.unpack(self._answer(path, asked, on_page))

    def picture(self, path: Path, index: int) -> PageImage:
        """The page `index` (from 0) of the PDF at `path` as a grey picture.

        Raises:
            IngestError, ExtractorClosedError: as `extract`.
        """
        return wire.unpack_picture(self._answer(path, {"picture": index}, None))

    def _answer(self, path: Path, asked: Mapping[str, Any], on_page: OnPage | None) -> dict[str, Any]:
        with self._lock:
            request = {"path": os.fsencode(path).hex(), "cpu_s": self.limits.cpu_s, **asked}
            message = self._ask(request, on_page)
        if "error" not in message:
            return message
        reason: str = message["error"]
        if reason == "internal":
            _log.error(kv("extract_crashed", detail=message.get("detail", "-")))
        raise IngestError(_known(reason))

    def close(self) -> None:
        """Ends the child, whatever it is doing."""
        self._is_closed = True
        child = self._child
        if child is not None:
            child.interrupt()
        with self._lock:
            self._drop()

    def _ask(self, request: dict[str, Any], on_page: OnPage | None) -> dict[str, Any]:
        """One request and its final answer. The child's death counts against the document only once it has begun."""
        deadline = time.monotonic() + self.limits.wall_s
        child = self._begin(request, deadline) or self._begin(request, deadline)
        if child is None:
            raise IngestError("internal")
        try:
            while "page" in (message := child.receive(deadline)):
                if on_page:
                    on_page(message["page"], message["pages"])
        except TimeoutError:
            self._drop()
            raise IngestError("timeout") from None
        except ChildGone as gone:
            self._drop()
            if self._is_closed:
                raise ExtractorClosedError from None
            _log.warning(kv("extract_child_died", code=gone.code))
            raise IngestError(_meaning(gone.code)) from None
        if message.get("last") or child.served >= self.limits.documents_per_child:
            self._drop()
        return message

    def _begin(self, request: dict[str, Any], deadline: float) -> Child | None:
        """A child that has taken up the request; None if it was found dead (killed while idle, say)."""
        child = self._ready()
        try:
            child.send(request)
            child.receive(deadline)
        except TimeoutError:
            self._drop()
            raise IngestError("timeout") from None
        except ChildGone as gone:
            self._drop()
            _log.warning(kv("extract_child_replaced", code=gone.code))
            return None
        return child

    def _ready(self) -> Child:
        if self._is_closed:
            raise ExtractorClosedError
        if self._child is not None and not self._child.is_alive():
            self._drop()
        if self._child is None:
            self._child = Child(self.limits.memory_bytes, self.limits.max_bytes, self.limits.max_chars)
        return self._child

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def _meaning(code: int) -> IngestReason:
    """Why a child that nobody ended is gone, by its exit code (negative: the signal)."""
    if code == -signal.SIGXCPU:
        return "timeout"
    if code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGTRAP, -signal.SIGILL):
        # The kernel's out-of-memory killer, or native code that could get no more memory and gave up.
        return "too_long"
    return "corrupt" if code < 0 else "internal"


def _known(reason: str) -> IngestReason:
    return reason if reason in REASONS else "internal"  # pyright: ignore[reportReturnType] - checked against the literal
