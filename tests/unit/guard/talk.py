"""Writes conversations as clients send them."""

import json
from typing import Any

Message = dict[str, Any]


class Talk:
    """A list of messages that grows by whole steps; ids are new in every batch."""

    def __init__(self, question: str | None = "Which fuse is it?") -> None:
        self.messages: list[Message] = []
        self._batches = 0
        if question is not None:
            self.user(question)

    def user(self, text: str) -> "Talk":
        self.messages.append({"role": "user", "content": text})
        return self

    def system(self, text: str) -> "Talk":
        self.messages.append({"role": "system", "content": text})
        return self

    def say(self, text: str) -> "Talk":
        self.messages.append({"role": "assistant", "content": text})
        return self

    def calls(self, *calls: tuple[str, Any], results: list[Any] | None = None, text: str | None = None) -> "Talk":
        """A batch of (name, arguments), with its results unless they are None."""
        self._batches += 1
        ids = [f"call_{self._batches}_{at}" for at in range(len(calls))]
        asked = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for one, (name, arguments) in zip(ids, calls, strict=True)
        ]
        self.messages.append({"role": "assistant", "content": text, "tool_calls": asked})
        for one, result in zip(ids, results or [], strict=False):
            self.messages.append({"role": "tool", "tool_call_id": one, "content": result})
        return self

    def call(self, name: str, arguments: Any = None, result: Any = "done", text: str | None = None) -> "Talk":
        """One call with its result."""
        return self.calls((name, arguments or {}), results=[result], text=text)
