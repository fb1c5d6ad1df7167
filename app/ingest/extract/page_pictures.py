"""The app's side of drawing PDF pages: a limited child for each page, few at a time, and a cache of what they drew.

Called by `app.web` from worker threads. It owns limits, the cache and what a child's end means; it parses nothing. A
page that could not be drawn is remembered like one that was, so that a hostile file costs its time once.
"""

import hashlib
import logging
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import BinaryIO

import orjson

from app.errors import AppError
from app.ingest.extract.drawn import Asked, Drawn
from app.ingest.extract.pipes import ROOT, kept_environment
from app.ingest.extract.wire import HEADER_BYTES, payload_size
from app.logs import kv

_log = logging.getLogger("app.ingest")
_LOOK = b"1"
"""Changes whenever the same page would be drawn differently."""

Opening = Callable[[], AbstractContextManager[BinaryIO]]


class PageNotDrawnError(AppError):
    """A page has no picture: the file is broken or locked, has no such page, or took too much."""

    status = 422
    default_code = "page_not_drawn"


@dataclass(frozen=True, slots=True)
class DrawLimits:
    """What one page may use. `at_once` pages are drawn at the same time; `cached_bytes` are kept in memory."""

    memory_bytes: int = 1 << 30
    cpu_s: float = 8
    wall_s: float = 10
    at_once: int = 2
    cached_bytes: int = 24 << 20


class PagePictures:
    """Draws pages. Thread-safe."""

    def __init__(self, limits: DrawLimits | None = None) -> None:
        self.limits = limits or DrawLimits()
        self._turns = threading.BoundedSemaphore(self.limits.at_once)
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, Drawn | None] = OrderedDict()
        self._bytes = 0

    def draw(self, sha256: str, asked: Asked, opening: Opening) -> Drawn:
        """The page of the PDF whose content has that hash; `opening` gives the file where it has to be read.

        Raises:
            PageNotDrawnError: there is no picture of it.
        """
        key = tag(sha256, asked)
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                return _there(self._cached[key])
        if not self._turns.acquire(timeout=self.limits.wall_s):
            raise PageNotDrawnError
        try:
            with opening() as file:
                drawn = self._drawn(file, asked)
        finally:
            self._turns.release()
        self._keep(key, drawn)
        if drawn is not None and drawn.page != asked.page:
            self._keep(tag(sha256, replace(asked, page=drawn.page)), drawn)
        return _there(drawn)

    def _drawn(self, file: BinaryIO, asked: Asked) -> Drawn | None:
        number = file.fileno()
        limits = {"memory_bytes": self.limits.memory_bytes, "cpu_s": self.limits.cpu_s}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "app.ingest.extract.page_child"],
                input=orjson.dumps({"file": number, **limits, "asked": asdict(asked)}),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env=kept_environment(),
                pass_fds=(number,),
                timeout=self.limits.wall_s,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            _log.warning(kv("page_not_drawn", reason="timeout"))
            return None
        return _answered(done.returncode, done.stdout)

    def _keep(self, key: str, drawn: Drawn | None) -> None:
        with self._lock:
            self._bytes += _size(drawn) - _size(self._cached.pop(key, None))
            self._cached[key] = drawn
            while self._bytes > self.limits.cached_bytes or len(self._cached) > _MOST_KEPT:
                _, dropped = self._cached.popitem(last=False)
                self._bytes -= _size(dropped)


_MOST_KEPT = 500
"""Failures have no bytes; they count all the same."""


def tag(sha256: str, asked: Asked) -> str:
    """Names a picture: what was drawn, of which content. Fit for an ETag."""
    seen = orjson.dumps([sha256, asdict(asked)])
    return hashlib.sha256(_LOOK + seen).hexdigest()[:32]


def _answered(code: int, answer: bytes) -> Drawn | None:
    end = HEADER_BYTES + payload_size(answer[:HEADER_BYTES])
    if code or len(answer) < max(end, HEADER_BYTES + 1):
        _log.warning(kv("page_not_drawn", reason="died", code=code))
        return None
    head = orjson.loads(answer[HEADER_BYTES:end])
    if "error" in head:
        _log.warning(kv("page_not_drawn", reason=head["error"]))
        return None
    return Drawn(answer[end:], **head)


def _there(drawn: Drawn | None) -> Drawn:
    if drawn is None:
        raise PageNotDrawnError
    return drawn


def _size(drawn: Drawn | None) -> int:
    return 0 if drawn is None else len(drawn.png)
