"""What the worker is doing right now, for pages: in memory, gone with the process.

Owns the stage and page of documents being read, the pace of embedding, and when the current batch began. What is
durable (states, counts) is the database's. Written by the lanes, read by pages and the command line; thread-safe.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.clock import Clock
from app.store.documents import Progress

WINDOW_S = 60.0
LINGER_S = 6.0
"""How long a finished batch is still counted, so that a page can show its end."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a document stands: its page being fetched; being read (page of pages, where it has any); being stored; the
    words in pictures of its pages being recognised (page of pages)."""

    name: Literal["fetching", "reading", "storing", "recognising"]
    page: int | None = None
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One progress bar: documents `done` of `total`, how many of them failed, passages `embedded` of `passages`.

    `rate` is passages embedded a second over the last minute, `eta_s` the seconds left; None while nobody can tell.
    """

    total: int
    searchable: int
    done: int
    failed: int
    passages: int
    embedded: int
    rate: float | None
    eta_s: int | None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.done == self.total


class ProgressBoard:
    """What is going on, by document; and the pace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._stages: dict[int, Stage] = {}
        self._embedded: deque[tuple[float, int]] = deque()
        self._began: datetime | None = None
        self._idle_since: float | None = None

    def set(self, document_id: int, stage: Stage) -> None:
        """Notes a document's stage."""
        with self._lock:
            self._stages[document_id] = stage

    def clear(self, document_id: int) -> None:
        """The worker is through with it."""
        with self._lock:
            self._stages.pop(document_id, None)

    def get(self, document_id: int) -> Stage | None:
        """A document's stage while it is being worked on."""
        with self._lock:
            return self._stages.get(document_id)

    def note_embedded(self, passages: int) -> None:
        """Counts passages towards the pace."""
        with self._lock:
            self._embedded.append((self._clock.monotonic(), passages))

    def note_work(self) -> None:
        """A lane has something to do: a batch begins, if none is going on."""
        with self._lock:
            self._began = self._began or self._clock.now()
            self._idle_since = None

    def note_idle(self) -> None:
        """Nothing is left to do: after a moment, the next work is a new batch."""
        now = self._clock.monotonic()
        with self._lock:
            self._idle_since = now if self._idle_since is None else self._idle_since
            if now - self._idle_since >= LINGER_S:
                self._began = None

    def began(self) -> datetime:
        """When the current batch began; now, if there is none."""
        with self._lock:
            return self._began or self._clock.now()

    def batch(self, counted: Progress) -> Batch:
        """The progress bar, from what the database counted since `began()`."""
        rate = self._rate()
        left = counted.passages - counted.embedded
        done = counted.ready + counted.failed
        total = counted.waiting + counted.embedding + done
        return Batch(
            total=total,
            searchable=counted.embedding + counted.ready,
            done=done,
            failed=counted.failed,
            passages=counted.passages,
            embedded=counted.embedded,
            rate=rate,
            eta_s=round(left / rate) if rate and left and not counted.waiting else None,
        )

    def _rate(self) -> float | None:
        now = self._clock.monotonic()
        with self._lock:
            while self._embedded and self._embedded[0][0] < now - WINDOW_S:
                self._embedded.popleft()
            if len(self._embedded) < 2:
                return None
            first, last = self._embedded[0][0], self._embedded[-1][0]
            passages = sum(count for _, count in self._embedded) - self._embedded[0][1]
        return passages / (last - first) if last > first else None


PageCallback = Callable[[int, int], None]
"""Called with (page, pages) while a document is read."""
