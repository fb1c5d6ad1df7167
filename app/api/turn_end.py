"""What each way to end means to the reader: the end's name, its code, its frame. Pure but for the catalog's sentences.

`app.api.run_turn` catches; here is the one function that maps an error to an error frame.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.api import frames
from app.api.frames import Frame
from app.catalog import Catalog
from app.edge.errors import error_message, stored_problem
from app.errors import AppError
from app.rag.errors import LLMError
from app.turns.registry import StopReason
from app.turns.settle import End

ERROR_CODES = frozenset(
    {
        "malformed_reply",
        "llm_unavailable",
        "llm_timeout",
        "llm_rejected",
        "llm_incomplete",
        "loop_guard",
        "retrieval_failed",
        "interrupted",
        "internal",
    }
)
"""What an `error` frame may say; any other error of a model is `llm_rejected`, any other error `internal`."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended. `frame` is an error's; those of an answer and of a stop are made of what was stored."""

    end: End
    code: str | None = None
    frame: Frame | None = None
    problem: Mapping[str, Any] | None = None


def end_of_error(catalog: Catalog, error: AppError, end: End = "failed") -> TurnEnd:
    """The end that an error makes; the frame holds the catalog's sentence, never a server's text."""
    code = error.code
    if code not in ERROR_CODES:
        code = "llm_rejected" if isinstance(error, LLMError) else "internal"
    retryable = error.retryable if isinstance(error, LLMError) else True
    frame = frames.error(code, error_message(catalog, error), retryable=retryable)
    return TurnEnd(end, code, frame, stored_problem(error))


def end_of_stop(catalog: Catalog, reason: StopReason | None, total_s: float) -> TurnEnd:
    """The end of a turn that was told to end, or (no reason) whose task was cancelled by the process's own end."""
    match reason:
        case "stop" | "detach":
            return TurnEnd("stopped")
        case "total":
            return end_of_error(catalog, LLMError("llm_timeout", reason="total", params={"limit": round(total_s)}))
        case "shutdown" | None:
            return end_of_error(catalog, AppError("interrupted"), "interrupted")
