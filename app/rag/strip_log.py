"""The log lines of what a filter removed: one WARNING each, the first hundred of a request, then how many more.

The filter is pure and only records; whoever feeds it hands its strips here. The line is a contract: it is how a new
format gets captured and registered (docs/operating.md).
"""

import logging
from collections.abc import Iterable

from app.logs import kv, turn_id_var
from app.rag.pieces import Strip

STRIPS_LOGGED = 100

_log = logging.getLogger("app.rag.llm")


class StripLog:
    """The strips of one request."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, strips: Iterable[Strip]) -> None:
        """Logs them, up to `STRIPS_LOGGED` in all."""
        for strip in strips:
            self._count += 1
            if self._count <= STRIPS_LOGGED:
                line = kv(
                    "scaffolding_stripped",
                    turn=turn_id_var.get(),
                    pattern=strip.pattern,
                    chars=strip.chars,
                    terminated=strip.terminated,
                )
                _log.warning("%s span=%r", line, strip.excerpt[:200])

    def end(self) -> None:
        """Says how many were not logged."""
        if self._count > STRIPS_LOGGED:
            _log.warning(kv("scaffolding_stripped_more", turn=turn_id_var.get(), count=self._count - STRIPS_LOGGED))
