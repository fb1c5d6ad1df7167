"""What the scaffolding filter knows of a call that is being read: counts, lookahead, held body, end tokens. Pure.

Used by `app.rag.scaffolding` only.
"""

import re
from dataclasses import dataclass, field

from app.rag.scaffolding_formats import REGISTRY, Entry
from app.rag.scaffolding_shapes import JsonScan, Shape

ECHO = 4096
"""Longest body that is compared with what follows it."""

LONGEST_END = max(len(end) for entry in REGISTRY for end in (*entry.ends, *entry.orphans, *entry.closers))


@dataclass(slots=True)
class OpenCall:
    """A start token whose fate is open, and what followed so far, as far as it may have to be given back."""

    entry: Entry
    token: str
    ends: re.Pattern[str] | None = None
    look: str = ""
    count: int = 0
    head: str = ""
    tail: str = ""
    shape: Shape = Shape.UNKNOWN
    json: JsonScan | None = None
    held: list[str] = field(default_factory=list[str])
    held_chars: int = 0
    dead: frozenset[str] = frozenset()
    echo: str = ""
    terminated: bool = False

    def take(self, text: str) -> None:
        """Counts and remembers stripped text, as little of it as the echo, the log and the end token need."""
        self.count += len(text)
        if len(self.head) < ECHO:
            self.head += text[: ECHO - len(self.head)]
        self.tail = (self.tail + text[-LONGEST_END:])[1 - LONGEST_END :]

    def hold(self, text: str) -> None:
        """Keeps text that may have to be given back."""
        if self.held and len(self.held[-1]) < ECHO:
            self.held[-1] += text
        else:
            self.held.append(text)
        self.held_chars += len(text)

    def choose_end(self, body: str) -> None:
        """Takes the end token that belongs to how the body begins."""
        for begin, end in self.entry.ends_by_begin:
            if body.startswith(begin):
                self.ends = re.compile(re.escape(end))

    def find_end(self, text: str, at: int, stop: int) -> int | None:
        """The offset behind the first end token that completes in `text[at:stop]`; it may have begun before `at`."""
        if self.ends is None:
            return None
        seam = self.tail + text[at : min(stop, at + LONGEST_END - 1)]
        across = self.ends.search(seam)
        if across and across.start() < len(self.tail):
            return at + across.end() - len(self.tail)
        inside = self.ends.search(text, at, stop)
        return inside.end() if inside else None
