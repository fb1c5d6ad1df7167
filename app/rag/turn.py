"""The numbers of a turn and its one log line. Pure.

`app.api.chat` fills a `TurnStats` while it runs a turn and logs `log_line()` exactly once, whatever the outcome; the
sweep at start (`app.turns.settle`) logs the line of a turn that a kill left behind. The last three fields and their
order are fixed by the contract; docs/operating.md explains each field and a test keeps the two equal.
"""

from dataclasses import dataclass, field
from typing import Literal

from app.logs import kv
from app.rag.tokens import Reading

Mode = Literal["grounded", "deflected"]
Outcome = Literal["ok", "error", "malformed", "stopped", "interrupted"]


@dataclass
class TurnStats:
    """Counts of one turn; times in milliseconds since its start. None means "not known" and prints `-`."""

    turn: str
    chat: int | None
    user: int
    mode: Mode | None = None
    outcome: Outcome | None = None
    model: str | None = None
    top_score: float = 0.0
    chunks: int = 0
    rounds: int = 0
    tool_calls: int = 0
    read_docs: int = 0
    recovered: bool = False
    guard: Literal["none", "note", "final", "abort"] = "none"
    guard_detector: str | None = None
    cited: int = 0
    dropped_cites: int = 0
    thinking_chars: int = 0
    answer_chars: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    retrieval_ms: int = 0
    first_ms: int = 0
    total_ms: int = 0
    retries: int = 0
    scaffold_stripped: int = 0
    chunk_ids: list[int] = field(default_factory=list[int])
    readings: list[Reading] = field(default_factory=list[Reading], repr=False)
    """Every request that was answered, in order; kept nowhere."""

    def line_fields(self) -> dict[str, object]:
        """The line's fields in the line's order."""
        return {
            "turn": self.turn,
            "chat": self.chat,
            "user": self.user,
            "mode": self.mode,
            "outcome": self.outcome,
            "model": self.model,
            "top_score": self.top_score,
            "chunks": self.chunks,
            "rounds": self.rounds,
            "tool_calls": self.tool_calls,
            "read_docs": self.read_docs,
            "recovered": self.recovered,
            "guard": self.guard,
            "cited": self.cited,
            "dropped_cites": self.dropped_cites,
            "thinking_chars": self.thinking_chars,
            "answer_chars": self.answer_chars,
            "prompt_tokens": self.prompt_tokens,
            "retrieval_ms": self.retrieval_ms,
            "first_ms": self.first_ms,
            "total_ms": self.total_ms,
            "retries": self.retries,
            "scaffold_stripped": self.scaffold_stripped,
        }

    def numbers(self) -> dict[str, object]:
        """What `turns.numbers` keeps for the receipt: the line's fields but the ids, and what the endpoint reported."""
        fields = self.line_fields()
        for key in ("turn", "chat", "user", "mode", "outcome"):
            del fields[key]
        return {
            **fields,
            "completion_tokens": self.completion_tokens,
            "finish_reason": self.finish_reason,
            "chunk_ids": self.chunk_ids,
            "guard_detector": self.guard_detector,
        }

    def log_line(self) -> str:
        """`chat_turn turn=… … total_ms=N retries=N scaffold_stripped=N`."""
        return kv("chat_turn", **self.line_fields())
