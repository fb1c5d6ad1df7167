"""The jobs this process has in hand, and the heartbeat that keeps them its own.

Owns which jobs those are and when their leases are renewed; how long a lease lasts is said by who keeps it. The lanes
hold and let go, the keeping lane beats. Used by `app.ingest.worker`; thread-safe.
"""

import threading
from collections.abc import Iterable

from app.clock import Clock
from app.store import jobs
from app.store.engine import Database


class Leases:
    """What is held.

    Args:
        lease_s: Seconds a lease lasts; it is renewed after a third of them.
    """

    def __init__(self, database: Database, clock: Clock, lease_s: float) -> None:
        self._database = database
        self._clock = clock
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._held: dict[int, jobs.ClaimedJob] = {}
        self._last_beat = clock.monotonic()

    def hold(self, claimed: Iterable[jobs.ClaimedJob]) -> None:
        """These are worked on from now on."""
        with self._lock:
            self._held.update({job.id: job for job in claimed})

    def let_go(self, claimed: Iterable[jobs.ClaimedJob]) -> None:
        """These are not, any more; those that were not held are passed over."""
        with self._lock:
            for job in claimed:
                self._held.pop(job.id, None)

    def beat(self) -> None:
        """Renews every lease, when it is time. Writes to the database."""
        now = self._clock.monotonic()
        if now - self._last_beat < self._lease_s / 3:
            return
        self._last_beat = now
        with self._lock:
            held = list(self._held.values())
        if held:
            self._database.write(lambda session: jobs.heartbeat(session, held, self._lease_s, self._clock.now()))
