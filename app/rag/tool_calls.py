"""What passes between the agent and its tools: results, and the toolbox as the agent sees it. Pure.

Owns the vocabulary only: `app.rag.toolbox` runs calls, `app.rag.tool_steps` shows them, `app.rag.agent` decides when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.rag.pieces import DocRef, Passage, ToolCallPiece

Tools = Sequence[Mapping[str, Any]]
"""Tool definitions in OpenAI's shape: `{"type": "function", "function": {name, description, parameters}}`."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to. `text` goes to the model, `summary` (a few words, never a document's text) to the reader.

    An unsuccessful call is a result, too: its text says what was wrong and what to do instead. `passages` are those
    that `text` holds, numbered on from the prompt's; `read` is the document whose text was read.
    """

    text: str
    summary: str
    ok: bool = True
    passages: tuple[Passage, ...] = ()
    read: DocRef | None = None


class Toolbox(Protocol):
    """The read-only tools of a grounded turn."""

    @property
    def max_rounds(self) -> int:
        """How many requests may offer tools."""
        ...

    @property
    def definitions(self) -> Tools:
        """The tools as a request offers them."""
        ...

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages that results have numbered so far."""
        ...

    async def run(self, call: ToolCallPiece) -> ToolResult:
        """Runs one call. Whatever goes wrong is an unsuccessful result; nothing is raised but a cancel."""
        ...
