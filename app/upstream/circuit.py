"""When a model server is left alone for a while, because it failed again and again. Pure: time comes in as a number.

Owns the count of failures in a row, the pause and who may try after it. What a failure is decides the caller
(`app.rag.retries`); one circuit per server lives in `app.upstream.client.ClientPool`.
"""

from dataclasses import dataclass, field

FAILURES = 5
"""So many in a row, and the server is left alone."""

PAUSE_S = 30.0
"""How long, and at least how far apart two probes are."""


@dataclass(slots=True)
class Pass:
    """Leave to ask once. A probe is the one request that may go to a server that was left alone."""

    is_probe: bool
    used: bool = field(default=False, init=False)
    """Whether its end was told."""


@dataclass(slots=True)
class Circuit:
    """Closed (requests go), open (none goes), and after the pause one probe at a time until one succeeds."""

    _failures: int = 0
    _until: float = 0.0
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the server is being left alone."""
        return self._failures >= FAILURES

    def wait(self, now: float) -> float | None:
        """None when a request may go now, else seconds until the next probe; 0 while one is on its way."""
        if not self.is_open:
            return None
        if self._until > now:
            return self._until - now
        return 0.0 if self._probing else None

    def enter(self, now: float) -> Pass:
        """Leave for one request. Only after `wait` gave None; its end has to be told, whatever it was."""
        if not self.is_open:
            return Pass(is_probe=False)
        self._probing, self._until = True, now + PAUSE_S
        return Pass(is_probe=True)

    def answered(self, leave: Pass | None = None) -> bool:
        """The server answered, if only to refuse: it is there. Says whether that ended a pause."""
        was_open = self.is_open
        self._failures, self._probing = 0, False
        if leave is not None:
            leave.used = True
        return was_open

    def failed(self, leave: Pass, now: float) -> bool:
        """The server could not be asked. Says whether that began a pause."""
        was_open, leave.used = self.is_open, True
        if not was_open:
            self._failures += 1
        elif leave.is_probe:
            self._probing = False
        if self.is_open and (leave.is_probe or not was_open):
            self._until = now + PAUSE_S
        return self.is_open and not was_open

    def left(self, leave: Pass) -> None:
        """The request ended without a word on the server: stopped by the reader, or by a clock of its own."""
        if leave.is_probe and not leave.used:
            self._probing = False
        leave.used = True
