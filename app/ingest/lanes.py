"""A lane: one thread that takes a step, and another, until it is stopped. Owns waiting, waking and surviving faults;
what a step does is `app.ingest.worker`'s."""

import logging
import threading
from collections.abc import Callable

from app.logs import kv

POLL_S = 2.0
"""How often an idle lane looks for work that another process queued."""

FAULT_S = 5.0
"""How long a lane rests after a fault of its own (a full disk, a locked database)."""

_log = logging.getLogger("app.ingest")


class Lane:
    """One thread.

    Args:
        step: Returns the seconds to wait before the next one; 0: at once, None: until woken or the next poll.
        stopping: Set when the process wants to end; the step that is going on is still finished.
    """

    def __init__(self, name: str, step: Callable[[], float | None], stopping: threading.Event) -> None:
        self._name = name
        self._step = step
        self._stopping = stopping
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"docent-{name}", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def wake(self) -> None:
        """Ends a wait."""
        self._woken.set()

    def join(self, timeout: float) -> bool:
        """Waits for the end; False when it did not come in time. A lane that never began has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                wait = self._step()
            except Exception:  # noqa: BLE001 - worker edge: a lane outlives whatever one step met
                if self._stopping.is_set():
                    # Came back too late: the database is closed, and the lease hands the job on.
                    _log.warning(kv("lane_cut", lane=self._name))
                    return
                _log.exception(kv("lane_fault", lane=self._name))
                wait = FAULT_S
            if wait != 0 and not self._stopping.is_set():
                self._woken.wait(POLL_S if wait is None else min(wait, POLL_S))
