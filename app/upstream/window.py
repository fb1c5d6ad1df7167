"""The window of one model on one server as values, and what a turn's reported tokens teach about it. Pure.

Owns which word counts: what the operator set, what the server runs with, what it was seen to read. Asking a server is
`app.upstream.identify`'s, keeping what it said `app.upstream.windows`'; what is put into the window is
`app.rag.context`'s.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

Source = Literal["setting", "server", "assumed", "learned", "default"]
"""Where a window comes from: LLM_CONTEXT_TOKENS; the server's word on what runs; what a server that has not loaded the
model yet gives it at least; a prompt of which the server read only so much; nothing at all."""

DEFAULT_WINDOW = 8192
"""Tokens for a server that says nothing: what today's small models take at least."""

LEARNED_S = 3600.0
"""Seconds for which a cut prompt counts: a server that was given more room meanwhile is noticed."""

_RATES = 8
_SURE = 3
_RATE_MIN, _RATE_MAX = 0.75, 2.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a server says of a model's window, in tokens. `tokens` None is nothing; without `in_effect` it is what the
    model will have at least once it is loaded. `kind` is the server's name, empty for unknown."""

    tokens: int | None = None
    in_effect: bool = True
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """What prompt and answer share, in tokens. `said` is the server's own word on what runs, whatever `source` is;
    `rate` is how many of the model's tokens one estimated token was in the turns before."""

    tokens: int = DEFAULT_WINDOW
    source: Source = "default"
    said: int | None = None
    rate: float = 1.0
    kind: str = ""


@dataclass(slots=True)
class Learned:
    """What the turns of one model taught: how its tokens compare with estimated ones, and what the server was seen to
    read at most."""

    _rates: deque[float] = field(default_factory=lambda: deque(maxlen=_RATES))
    _read: int | None = None
    _sent: int = 0
    _until: float = 0.0

    @property
    def rate(self) -> float:
        """The largest of the last eight observations, between 0.75 and 2; below 1 only once there are three."""
        if not self._rates:
            return 1.0
        largest = max(self._rates)
        lowest = _RATE_MIN if len(self._rates) >= _SURE else 1.0
        return min(_RATE_MAX, max(lowest, largest))

    def counted(self, rate: float) -> None:
        """A whole prompt was `rate` times as many tokens as estimated."""
        self._rates.append(rate)

    def cut(self, *, read: int, sent: int, now: float) -> None:
        """The server read `read` of about `sent` tokens, at `now` by a monotonic clock."""
        self._read, self._sent, self._until = read, sent, now + LEARNED_S

    def most(self, said: Said, now: float) -> int | None:
        """The window that the last cut showed; the server's own word where that explains the cut: a server that cuts
        may keep less than fits (Ollama since 0.32 keeps half)."""
        if self._read is None or now >= self._until:
            return None
        if said.in_effect and said.tokens is not None and self._read <= said.tokens < self._sent:
            return said.tokens
        return self._read


def window_of(setting: int | None, said: Said, learned: Learned, now: float) -> Window:
    """The window that counts: `setting` before what the server says, before 8,192; what a cut showed limits each."""
    tokens, source = DEFAULT_WINDOW, "default"
    if setting is not None:
        tokens, source = setting, "setting"
    elif said.tokens is not None:
        tokens, source = said.tokens, "server" if said.in_effect else "assumed"
    most = learned.most(said, now)
    if most is not None and most < tokens:
        tokens, source = most, "learned"
    running = said.tokens if said.in_effect else None
    return Window(tokens, source, running, learned.rate, said.kind)
