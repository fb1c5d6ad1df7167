"""The visible side of the scaffolding filter: what may be shown, what is held because it may begin a token. Pure.

Owns the automaton over start tokens, the held text, end-of-turn tokens that wait for the end of the stream, and the
code state of the text shown. What follows a start token belongs to `app.rag.scaffolding`, which builds on this class.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from app.rag.pieces import Strip
from app.rag.scaffolding_formats import REGISTRY, Entry
from app.rag.scaffolding_shapes import CodeState

HOLD = 64 * 1024
"""Characters that are held at most."""

TURN_ENDS = 4096
"""Characters of stacked end-of-turn tokens and blanks that may be the end of the stream."""

EXCERPT = 200
LONGEST = max(len(entry.start) for entry in REGISTRY)


@dataclass(slots=True)
class Node:
    """A state of the automaton: the longest suffix of the visible text that begins a start token."""

    depth: int
    next: "dict[str, Node]" = field(default_factory=dict[str, "Node"])
    entry: Entry | None = None


def build_automaton(entries: tuple[Entry, ...]) -> Node:
    """Aho and Corasick's automaton (1975), its failure links worked into the transitions."""
    root = Node(0)
    for entry in entries:
        node = root
        for char in entry.start:
            node = node.next.setdefault(char, Node(node.depth + 1))
        node.entry = entry
    queue = [(child, root) for child in root.next.values()]
    for node, fallback in queue:
        queue += [(child, fallback.next.get(char, root)) for char, child in node.next.items()]
        node.next = {**fallback.next, **node.next}
    return root


ROOT = build_automaton(REGISTRY)
TRIGGER = re.compile("[" + re.escape("".join(sorted({entry.start[0] for entry in REGISTRY}))) + "]")


@dataclass(slots=True)
class Source:
    """Text still to be read; `dead` names spans that are known not to end in it."""

    text: str
    at: int = 0
    dead: frozenset[str] = frozenset()


class VisibleText(ABC):
    """Text on its way to the reader."""

    def __init__(self) -> None:
        self.stripped_chars = 0
        self._strips: list[Strip] = []
        self._clear()

    def _clear(self) -> None:
        self._out: list[str] = []
        self._node = ROOT
        self._held = ""
        self._sent = ""
        self._turn_ends: list[tuple[str, Entry | None]] = []
        self._turn_end_chars = 0
        self._code = CodeState()
        self._unread_code: list[str] = []
        self._unread_chars = 0

    def drain_strips(self) -> list[Strip]:
        """What was removed since the last call."""
        strips, self._strips = self._strips, []
        return strips

    def _is_plain(self, text: str) -> bool:
        """Whether `text` can be shown as it is, nothing being held: the common case, kept cheap."""
        if self._node is not ROOT or self._turn_ends or TRIGGER.search(text):
            return False
        self._remember(text)
        return True

    def _visible(self, source: Source) -> None:
        """Reads text outside any call, up to the first token that changes what is going on."""
        text = source.text
        while source.at < len(text):
            if self._node is ROOT:
                match = TRIGGER.search(text, source.at)
                stop = match.start() if match else len(text)
                if stop > source.at:
                    self._emit(text[source.at : stop])
                    source.at = stop
                if match is None:
                    return
            char = text[source.at]
            source.at += 1
            self._node = self._node.next.get(char, ROOT)
            if self._node.depth == 0:
                self._release_held(char)
                continue
            self._held += char
            if self._node.entry is not None:
                if self._take_token(self._node.entry):
                    return
            elif len(self._held) >= LONGEST:
                self._emit(self._held[0])
                self._held = self._held[1:]

    def _take_token(self, entry: Entry) -> bool:
        """Decides on a complete start token; True when what follows is read by another state."""
        unsent = min(len(entry.start), len(self._held))
        before, token = self._held[:-unsent], self._held[-unsent:]
        if entry.kind == "terminal":
            self._release_held("", keep=unsent)
            self._hold_turn_end(token, entry)
            return False
        if entry.kind == "tag" and not entry.start.startswith("<|") and self._in_code(before):
            self._release_held("")
            return False
        self._held = before
        self._begin(entry, token)
        return True

    @abstractmethod
    def _begin(self, entry: Entry, token: str) -> None:
        """Starts reading what follows `token`, which is no longer held."""

    def _release_held(self, more: str, *, keep: int = 0) -> None:
        """Shows the held text but its last `keep` characters, which the caller has taken, and `more`."""
        held = self._held[: len(self._held) - keep] if keep else self._held
        self._held = ""
        self._node = ROOT
        if held or more:
            self._emit(held + more)

    def _emit(self, text: str) -> None:
        """Shows `text`; end-of-turn tokens that waited for the end of the stream were not at the end after all."""
        if not text:
            return
        if self._turn_ends:
            if text.isspace():
                self._hold_turn_end(text, None)
                return
            text = self._take_turn_ends() + text
        self._show(text)

    def _show(self, text: str) -> None:
        self._out.append(text)
        self._remember(text)

    def _remember(self, text: str) -> None:
        """Keeps what later decisions need of the text shown: its tail, and whether code is open."""
        self._sent = (self._sent + text)[1 - LONGEST :]
        self._unread_code.append(text)
        self._unread_chars += len(text)
        if self._unread_chars > 4096:
            self._read_code()

    def _hold_turn_end(self, text: str, entry: Entry | None) -> None:
        """Keeps an end-of-turn token, or blanks after one, until it is known whether the stream ends there."""
        self._turn_ends.append((text, entry))
        self._turn_end_chars += len(text)
        if self._turn_end_chars > TURN_ENDS:
            self._show(self._take_turn_ends())

    @property
    def _waiting(self) -> str:
        """The text that waits to know whether the stream ends behind it."""
        return "".join(part for part, _ in self._turn_ends)

    def _take_turn_ends(self) -> str:
        waiting = self._waiting
        self._turn_ends = []
        self._turn_end_chars = 0
        return waiting

    def _strip_turn_ends(self) -> None:
        """At the end of the stream: end-of-turn tokens go, the blanks between them stay."""
        for text, entry in self._turn_ends:
            if entry is None:
                self._out.append(text)
            else:
                self._record(entry, len(text), text, terminated=True)
        self._take_turn_ends()

    def _rejoin(self) -> None:
        """After a removal: the text before it and the text after it are neighbours now."""
        waiting = "".join(part for part, _ in self._turn_ends[-LONGEST:])
        self._node = ROOT
        for char in (self._sent + waiting)[1 - LONGEST :] + self._held:
            self._node = self._node.next.get(char, ROOT)

    def _in_code(self, before: str) -> bool:
        """Whether a tag behind `before` (held, after what was shown) stands in a code span or an open fence."""
        self._read_code()
        return self._code.is_open_after(self._waiting + before)

    def _read_code(self) -> None:
        self._code.advance("".join(self._unread_code))
        self._unread_code.clear()
        self._unread_chars = 0

    def _record(self, entry: Entry, chars: int, excerpt: str, *, terminated: bool) -> None:
        self.stripped_chars += chars
        self._strips.append(Strip(entry.name, chars, excerpt[:EXCERPT], terminated))
