"""Whether a request that failed is made again, and whether its server is asked at all.

Owns the wait between tries, their number, and what a failure says about the server (`app.upstream.circuit` counts).
Sends nothing: `app.rag.llm` does, and is the only caller.
"""

import logging
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from app.logs import kv
from app.rag.reply import ReplyError
from app.upstream.circuit import FAILURES, PAUSE_S, Pass
from app.upstream.client import ClientPool, Endpoint
from app.upstream.failures import Failure

BACKOFF_S = 0.5
BACKOFF_CAP_S = 4.0
RETRY_AFTER_CAP_S = 30.0
"""The longest wait a server may ask for; beyond it the user is told when to ask again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """Another try is due after `delay_s` seconds."""

    attempt: int
    max: int
    delay_s: float
    reason: str | None

    def data(self) -> Mapping[str, Any]:
        """What the `retry` piece tells."""
        return {
            "attempt": self.attempt,
            "max": self.max,
            "delay_ms": round(self.delay_s * 1000),
            "reason": self.reason,
        }


class Tries:
    """The tries of one request, inside `with`: how that ends tells the server's circuit how the server is.

    `begun` says whether a piece of the present try has been passed on, after which there is no other.
    """

    def __init__(self, pool: ClientPool, endpoint: Endpoint) -> None:
        self.begun = False
        self._clock, self._endpoint = pool.clock, endpoint
        self._circuit = pool.circuit(endpoint)
        self._leave = Pass(is_probe=False)
        self._attempt = 0

    def __enter__(self) -> "Tries":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._circuit.left(self._leave)

    def begin(self) -> None:
        """A try begins.

        Raises:
            ReplyError: when the server is being left alone; other requests may have failed during the wait.
        """
        now = self._clock.monotonic()
        if (wait := self._circuit.wait(now)) is not None:
            params: dict[str, object] = {"server": self._endpoint.server, "seconds": math.ceil(wait)}
            raise ReplyError(Failure("llm_unavailable", "circuit" if wait else "circuit_probe", params=params))
        self._leave = self._circuit.enter(now)
        self._attempt += 1

    def answered(self) -> None:
        """A piece has come: the server is there."""
        if not self.begun:
            self.begun = True
            self._found()

    def failed(self, failure: Failure) -> Retry | None:
        """The present try failed: when to make the next, or None for no further one."""
        if self.begun:
            return None
        delay = _delay(failure, self._attempt)
        if delay is not None and self._attempt <= self._endpoint.retry_max and not self._circuit.is_open:
            return Retry(self._attempt, self._endpoint.retry_max, delay, failure.retry)
        if _is_down(failure):
            if self._circuit.failed(self._leave, self._clock.monotonic()):
                _log.warning(
                    kv("model_server_down", server=self._endpoint.server, failures=FAILURES, pause_s=round(PAUSE_S))
                )
        elif failure.status is not None:
            self._found()
        return None

    def _found(self) -> None:
        if self._circuit.answered(self._leave):
            _log.info(kv("model_server_up", server=self._endpoint.server))


def _delay(failure: Failure, attempt: int) -> float | None:
    """Seconds to wait after a try that failed, or None where no wait helps."""
    if failure.retry is None:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= RETRY_AFTER_CAP_S else None
    return random.uniform(0, min(BACKOFF_CAP_S, BACKOFF_S * 2 ** (attempt - 1)))  # noqa: S311 - jitter, not a secret


def _is_down(failure: Failure) -> bool:
    """Whether a failure counts against the server: no connection, 5xx, 429; not another refusal, not a loading model
    and not a reply that hangs or breaks off."""
    return failure.retry is not None and failure.reason != "loading" and failure.status != 408
