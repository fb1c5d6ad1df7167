"""Reasoning that a model writes into its text, between `<think>` and `</think>`, told apart from the answer. Pure.

Only a reply that *begins* with the tag is rerouted; the same words later in a text are text. Used by `app.rag.llm`, and
only where a content filter is given.
"""

from collections.abc import Iterator
from typing import Literal

Kind = Literal["content", "thinking"]

_OPEN, _CLOSE = "<think>", "</think>"

_BLANKS = 1024
"""Blanks that may precede the tag. A reply may be blanks without end, and each piece looks at all that is held."""


class ThinkRouter:
    """Feed and flush; one per attempt. What cannot be decided yet is held: at most a tag's length and white space."""

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "content"] = "start"
        self._held = ""

    def feed(self, text: str) -> Iterator[tuple[Kind, str]]:
        """Takes text as it comes, cut anywhere; gives what is decided, never empty."""
        if self._state == "content":
            if text:
                yield "content", text
            return
        self._held += text
        if self._state == "start":
            yield from self._begin()
        if self._state == "thinking":
            yield from self._think()

    def flush(self) -> Iterator[tuple[Kind, str]]:
        """Gives what was held at the end of the reply."""
        held, self._held = self._held, ""
        if held:
            yield ("thinking" if self._state == "thinking" else "content"), held

    def _begin(self) -> Iterator[tuple[Kind, str]]:
        begin = self._held.lstrip()
        if len(self._held) - len(begin) > _BLANKS:
            self._state = "content"
            yield from self.flush()
        elif begin.startswith(_OPEN):
            self._state, self._held = "thinking", begin[len(_OPEN) :]
        elif begin.startswith(_CLOSE):
            self._state, self._held = "content", begin[len(_CLOSE) :]
            yield from self.flush()
        elif not (_OPEN.startswith(begin) or _CLOSE.startswith(begin)):
            self._state = "content"
            yield from self.flush()

    def _think(self) -> Iterator[tuple[Kind, str]]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "content", rest
        else:
            held = next((n for n in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:n])), 0)
            thought, self._held = thought[: len(thought) - held], thought[len(thought) - held :]
        if thought:
            yield "thinking", thought
        if tag:
            yield from self.flush()
