"""Frames on their way into the event log: text is gathered, so that a fast model makes no flood of tiny frames.

Leading edge: text goes out at once when the last text is 40 ms old, so the first word never waits; else it waits until
it is. Other frames go out at once, after the text before them. Used by `app.api.run_turn`.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

from app.api import frames
from app.api.frames import Frame
from app.turns.event_log import EventLog

GAP_S = 0.04

TextKind = Literal["delta", "thinking"]
_BUILD: dict[TextKind, Callable[[str], Frame]] = {"delta": frames.delta, "thinking": frames.thinking}


class FrameGatherer:
    """Writes one turn's frames into its log; every text comes out once, in order, in as few frames as the gap allows.

    Args:
        gap_s: Seconds between two frames of text.
    """

    def __init__(self, log: EventLog, *, gap_s: float = GAP_S) -> None:
        self._log = log
        self._gap_s = gap_s
        self._loop = asyncio.get_running_loop()
        self._kind: TextKind = "delta"
        self._held: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = self._loop.time() - gap_s

    def text(self, kind: TextKind, text: str) -> None:
        """Adds answer text or reasoning."""
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._held.append(text)
        wait = self._last + self._gap_s - self._loop.time()
        if wait <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self.flush)

    def frame(self, frame: Frame) -> None:
        """Sends a frame, after the text that came before it."""
        self.flush()
        self._send(frame)

    def flush(self) -> None:
        """Sends the text that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text, self._held = "".join(self._held), []
        if text:
            self._send(_BUILD[self._kind](text))
            self._last = self._loop.time()

    def _send(self, frame: Frame) -> None:
        self._log.append(frame.event, frame.data)
