"""The tool calls of one reply: run in order, shown as pieces, and laid down as messages for the next request.

Owns the ids of calls (unique in a turn), what of a call's arguments is shown, how many calls of one reply are run and
for how long. What a tool does is `app.rag.toolbox`'s. Called by `app.rag.tool_rounds` between two requests.
"""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast

from app.rag.citations import source_rows
from app.rag.pieces import DocRef, StreamPiece, ToolCallPiece, storable
from app.rag.prompts import disarm, rearm
from app.rag.scaffolding import ScaffoldingFilter
from app.rag.tool_calls import Toolbox, ToolResult

CALLS_AT_ONCE = 8
"""Calls of one reply that are run; a reply with more is a model run wild."""

CALL_S = 30.0
SHOWN_CHARS = 200
SHOWN_ARGUMENTS = 6

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class ToolSteps:
    """The tool calls of one turn. `count` is how many were run, `read` the documents they read, each once."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._ids: set[str] = set()
        self.count = 0
        self.read: list[DocRef] = []
        self.results: list[ToolResult] = []
        """Of the last calls that were run."""

    def named(self, calls: Sequence[ToolCallPiece]) -> list[ToolCallPiece]:
        """The calls of a reply that can be run, each with an id that no other call of the turn has, and a name that
        every server takes back."""
        return [self._named(call) for call in calls[:CALLS_AT_ONCE]]

    async def run(self, calls: Sequence[ToolCallPiece]) -> AsyncGenerator[StreamPiece]:
        """Runs calls in order; yields a `tool` piece as each begins and ends."""
        self.results = []
        for call in calls:
            piece = {"id": call.id, "name": call.name, "args": shown_arguments(call.arguments)}
            yield StreamPiece("tool", data={**piece, "status": "start", "summary": "", "ms": 0, "sources": []})
            began = time.perf_counter()
            result = await self._result(call)
            self.results.append(result)
            self._count(result)
            ended = {
                "status": "ok" if result.ok else "error",
                "summary": result.summary,
                "ms": round((time.perf_counter() - began) * 1000),
                "sources": source_rows(result.passages, None),
            }
            yield StreamPiece("tool", data={**piece, **ended})

    def messages(
        self, text: str, calls: Sequence[ToolCallPiece], texts: Sequence[str], *, left_out: int
    ) -> list[dict[str, Any]]:
        """A reply with its calls and what they came to, as messages; `left_out` more calls were not run."""
        answers = [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, texts, strict=True)
        ]
        answers[-1]["content"] += _left_out(left_out)
        return [_assistant(text, calls), *answers]

    async def _result(self, call: ToolCallPiece) -> ToolResult:
        try:
            async with asyncio.timeout(CALL_S):
                return await self._toolbox.run(call)
        except TimeoutError:
            text = f"{call.name} took longer than {CALL_S:.0f} seconds and was given up. Ask for less, or answer now."
            return ToolResult(text, "took too long", ok=False)

    def _count(self, result: ToolResult) -> None:
        self.count += 1
        if result.read is not None and result.read not in self.read:
            self.read.append(result.read)

    def _named(self, call: ToolCallPiece) -> ToolCallPiece:
        identity = call.id
        if not identity or identity in self._ids or len(identity) > 64 or _NOT_A_NAME.search(identity):
            # Nine letters and digits: what the strictest chat templates accept.
            identity = next(made for n in range(1, 1_000_000) if (made := f"call{n:05d}") not in self._ids)
        self._ids.add(identity)
        name = _NOT_A_NAME.sub("_", call.name)[:64] or "unnamed"
        return ToolCallPiece(call.index, identity, name, call.arguments)


def shown_arguments(arguments: str) -> dict[str, Any]:
    """What a reader sees of a call's raw JSON arguments: a few short values, without any tool syntax in them.

    Empty when they are no JSON object.
    """
    parsed = _parsed(arguments) or {}
    return {_clean(key): _shown(value) for key, value in list(parsed.items())[:SHOWN_ARGUMENTS]}


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    # JSON has no infinity, and yet 1e999 is JSON and becomes one: no frame could hold it.
    return _clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _clean(text: str) -> str:
    content_filter = ScaffoldingFilter()
    text = rearm(text)
    cut = text[: SHOWN_CHARS * 2]
    clean = " ".join(storable(content_filter.feed(cut) + content_filter.flush()).split())
    return clean if len(clean) <= SHOWN_CHARS and cut == text else clean[: SHOWN_CHARS - 1] + "…"


def _assistant(text: str, calls: Sequence[ToolCallPiece]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": disarm(storable(text)),
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _sendable(call.arguments)},
            }
            for call in calls
        ],
    }


def _sendable(arguments: str) -> str:
    """Broken arguments would make the server refuse every later request of the turn."""
    return disarm(storable(arguments)) if _parsed(arguments) is not None else "{}"


def _parsed(arguments: str) -> Mapping[str, Any] | None:
    try:
        value: object = json.loads(arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _refuse(constant: str) -> object:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's


def _left_out(more: int) -> str:
    return f"\n\n{more} more calls of that reply were not run: at most {CALLS_AT_ONCE} at once." if more else ""
