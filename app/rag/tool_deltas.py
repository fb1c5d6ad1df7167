"""Tool calls put together from the fragments a model server streams. Pure.

Servers disagree on what a fragment names: some leave out `index`, some send 0 for every call, most send the id in the
first fragment only. A fragment therefore goes to the call with its id, else to the last call with its index, else to
the current one. Used by `app.rag.sse_reader` only.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from app.rag.pieces import ToolCallPiece


@dataclass(slots=True)
class _Call:
    position: int
    index: int | None
    id: str
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        """Whether the arguments could already be run, so that a new name means a new call."""
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class ToolDeltas:
    """The calls of one reply."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}
        """The last call with each index. A model run wild makes thousands, and each fragment looks for its own."""
        self._current: _Call | None = None

    def feed(self, raw: object) -> bool:
        """Takes one element of `tool_calls` as the server sent it; says whether it was understood."""
        if not isinstance(raw, dict):
            return False
        delta = cast("dict[str, Any]", raw)
        function = cast("dict[str, Any]", delta["function"]) if isinstance(delta.get("function"), dict) else {}
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        given = delta.get("index")
        index = given if isinstance(given, int) and not isinstance(given, bool) else None
        identity = _text(delta.get("id"))
        if not (name or arguments or identity):
            return False
        call = self._route(identity, index, name)
        call.id = call.id or identity
        if call.id:
            self._by_id.setdefault(call.id, call)
        call.name = call.name or name
        call.arguments += arguments
        self._current = call
        return True

    def calls(self) -> list[ToolCallPiece]:
        """The calls in the server's order, numbered from 0; a missing id is made up, missing arguments are `{}`."""
        ordered = sorted(self._calls, key=lambda call: call.position if call.index is None else call.index)
        return [
            ToolCallPiece(number, call.id or f"call_{number}", call.name, call.arguments.strip() or "{}")
            for number, call in enumerate(ordered)
        ]

    def _route(self, identity: str, index: int | None, name: str) -> _Call:
        if identity in self._by_id:
            return self._by_id[identity]
        known = self._current if index is None else self._by_index.get(index)
        if known is None or (identity and known.id) or (name and known.name and known.is_whole()):
            return self._new(identity, index)
        return known

    def _new(self, identity: str, index: int | None) -> _Call:
        call = _Call(len(self._calls), index, identity)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """Raw JSON text; some servers send the object itself."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return _text(value)
