"""The store lane: what was read goes into the database, many documents in one transaction.

Owns the queue between the lane that reads and the transactions, and their size; what is written is
`app.ingest.pipeline`'s. `app.ingest.worker` runs the lane.
"""

import queue
import threading
from collections.abc import Callable

from app.ingest.leases import Leases
from app.ingest.pipeline import Pipeline
from app.ingest.reading import Read
from app.ingest.yielding import Yielding

READ_AHEAD = 64

GATHER_S = 0.04
"""How long the lane waits for more, while more is being read: a transaction costs as much for one as for ten."""

STORE_AT_ONCE = 32
STORE_BESIDE_TURNS = 2
STORE_CHARS = 1_000_000
"""Documents and characters stored in one transaction: about 100 ms of the only writer's time, and a tenth of it where
someone is asking questions."""


class Storing:
    """Takes what was read (`put`, from the reading lane) and stores it (`step`, `finish`).

    Args:
        is_reading: Whether more will be read in a moment.
        stored: Told after each transaction.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        leases: Leases,
        turns_first: Yielding,
        stopping: threading.Event,
        *,
        is_reading: Callable[[], bool],
        stored: Callable[[], None],
    ) -> None:
        self._pipeline = pipeline
        self._leases = leases
        self._turns_first = turns_first
        self._stopping = stopping
        self._is_reading = is_reading
        self._stored = stored
        self._queue: queue.SimpleQueue[Read] = queue.SimpleQueue()

    def put(self, read: Read) -> None:
        """To be stored soon."""
        self._queue.put(read)

    def wait_for_room(self) -> None:
        """Returns once no more than `READ_AHEAD` documents wait, or the process wants to end."""
        while self._queue.qsize() > READ_AHEAD and not self._stopping.wait(0.01):
            pass

    def step(self) -> float | None:
        """Stores what has come together."""
        self._turns_first.give_way()
        if self._is_reading() and self._queue.qsize() < self._most() // 2:
            self._stopping.wait(GATHER_S)
        return 0 if self._store_some() else None

    def finish(self) -> None:
        """Stores all that is left. The last, when the process ends."""
        while self._store_some():
            pass

    def _most(self) -> int:
        return STORE_BESIDE_TURNS if self._turns_first.has_waited else STORE_AT_ONCE

    def _store_some(self) -> bool:
        """Stores what has been read by now; False when there was nothing."""
        reads: list[Read] = []
        chars, most = 0, self._most()
        while len(reads) < most and chars < STORE_CHARS:
            try:
                read = self._queue.get_nowait()
            except queue.Empty:
                break
            reads.append(read)
            chars += len(read.extraction.text) if read.extraction else 0
        if not reads:
            return False
        try:
            self._pipeline.store(reads)
        finally:
            self._leases.let_go(read.task.job for read in reads)
        self._stored()
        return True
