"""The lane that learns which language documents are in, once nothing else is to be read.

Owns when it looks and how many documents at once; the telling is `app.ingest.telling`'s, a process that ends with each
batch. Documents of before this existed are told the same way as new ones. Used by `app.ingest.worker`.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from app.clock import Clock
from app.ingest.errors import IngestError
from app.ingest.extract.language import HEAD_CHARS
from app.logs import kv
from app.store import jobs, readings
from app.store.engine import Database

AT_ONCE = 200
REST_S = 15.0
"""How long nothing has to be waiting to be read before it begins."""
LOOK_S = 60.0
"""How long it does not look again after everything was told."""
FAULT_S = 600.0

_log = logging.getLogger("app.ingest")


class Teller(Protocol):
    """What is needed of `app.ingest.telling.Telling`."""

    def languages(self, heads: Sequence[str]) -> list[str]:
        """The language of each text's beginning."""
        ...

    def close(self) -> None:
        """Breaks off and tells no more."""
        ...


class LanguageWork:
    """The lane's work. `teller` begins a process for one batch."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        teller: Callable[[], Teller],
        stopping: threading.Event,
        rest_s: float = REST_S,
    ) -> None:
        self._database = database
        self._clock = clock
        self._teller = teller
        self._stopping = stopping
        self._rest_s = rest_s
        self._calm_since: float | None = None
        self._open: Teller | None = None

    def step(self) -> float | None:
        """One batch, if everything is read and has been for a while."""
        now = self._clock.monotonic()
        if self._database.read(lambda session: jobs.next_due(session, "ingest", self._clock.now())) is not None:
            self._calm_since = None
            return None
        self._calm_since = self._calm_since if self._calm_since is not None else now
        if now < self._calm_since + self._rest_s:
            return self._calm_since + self._rest_s - now
        heads = self._database.read(lambda session: readings.untold(session, AT_ONCE, HEAD_CHARS))
        if not heads:
            self._calm_since = now + LOOK_S
            return None
        teller = self._open = self._teller()
        try:
            codes = teller.languages([head for _, head in heads])
        except IngestError as error:
            if not self._stopping.is_set():
                _log.warning(kv("languages_not_told", documents=len(heads), reason=error.reason))
            self._calm_since = now + FAULT_S
            return None
        finally:
            self._open = None
            teller.close()
        told = {number: code for (number, _), code in zip(heads, codes, strict=True)}
        self._database.write(lambda session: readings.set_languages(session, told))
        return 0

    def close(self) -> None:
        """Breaks off, from another thread."""
        teller = self._open
        if teller is not None:
            teller.close()
