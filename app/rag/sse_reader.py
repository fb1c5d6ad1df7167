"""Bytes of a model server's reply → provider events. Pure.

Owns the framing (lines, `data:`, comments, limits), the tolerance for what real servers send instead of clean chunks,
and the assembly of tool calls. Opens no connection and knows no clock, retry or filter: `app.rag.llm` does, and is the
only caller. One reader per attempt.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import orjson

from app.rag.pieces import ToolCallPiece
from app.rag.tool_deltas import ToolDeltas

LINE_LIMIT = 1024 * 1024
REQUEST_LIMIT = 8 * 1024 * 1024
BAD_FRAMES_ALLOWED = 3
_ERROR_TEXT = 2000
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENDS = (b"\n", b"\r")


@dataclass(frozen=True, slots=True)
class Text:
    """Visible text of the reply, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning that the server sent apart from the text, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A fragment of a tool call arrived: progress, nothing to show."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The reply cannot be used. `text` is the server's own words: to recognise a cause by, never to show.

    `size`: a line or the whole over its limit; `frames`: too many that are not JSON; `not_api`: JSON of another kind;
    `cut`: the server itself says that it broke off.
    """

    kind: Literal["provider", "size", "frames", "not_api", "cut"]
    text: str = ""


_BROKEN_OFF: Mapping[object, Literal["provider", "cut"]] = {"error": "provider", "abort": "cut"}
"""Finish reasons that finish nothing."""

ProviderEvent = Text | Thinking | ToolDelta | Failed


class SseReader:
    """One reply, fed as it arrives. After a `Failed` or `[DONE]` the rest is ignored.

    `finish_reason`, `done`, `prompt_tokens`, `completion_tokens` and `bad_frames` tell what has been seen so far.
    """

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.done = False
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.bad_frames = 0
        self._tools = ToolDeltas()
        self._rest = b""
        self._size = 0
        self._skip_newline = False
        self._held: list[bytes] = []
        self._held_size = 0
        self._event = ""
        self._failed = False
        self._begun = False

    @property
    def complete(self) -> bool:
        """Whether the server said that the reply is whole: a finish reason or `[DONE]`."""
        return self.done or self.finish_reason is not None

    def tool_calls(self) -> list[ToolCallPiece]:
        """The calls so far, by index."""
        return self._tools.calls()

    def feed(self, data: bytes) -> list[ProviderEvent]:
        """Takes bytes as they come, cut anywhere; gives the events they complete."""
        events: list[ProviderEvent] = []
        if not data or self._over(len(data), events):
            return events
        if self._skip_newline and data.startswith(b"\n"):
            data = data[1:]
        self._skip_newline = data.endswith(b"\r")
        if not self._begun and len(self._rest) + len(data) >= 3:
            data, self._rest, self._begun = (self._rest + data).removeprefix(b"\xef\xbb\xbf"), b"", True
        lines = (self._rest + data).splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith(_ENDS) else b""
        for line in lines:
            self._line(line.rstrip(b"\r\n"), events)
        if len(self._rest) > LINE_LIMIT:
            self._fail(Failed("size"), events)
        return events

    def flush(self) -> list[ProviderEvent]:
        """The end of the stream: gives what a missing last line end had held back."""
        events: list[ProviderEvent] = []
        rest, self._rest = self._rest, b""
        if rest:
            self._line(rest, events)
        self._line(b"", events)
        return events

    def feed_json(self, body: bytes) -> list[ProviderEvent]:
        """Takes a whole JSON body instead of a stream: what a server sends that ignores `stream`."""
        events: list[ProviderEvent] = []
        if self._over(len(body), events):
            return events
        payload = _parse(body)
        known = _is_object(payload) and self._payload(payload, events)
        if self._failed:
            return events
        if known:
            self.done = True
        else:
            self._fail(Failed("not_api"), events)
        return events

    def _over(self, size: int, events: list[ProviderEvent]) -> bool:
        if self._failed or self.done:
            return True
        self._size += size
        if self._size > REQUEST_LIMIT:
            self._fail(Failed("size"), events)
        return self._failed

    def _fail(self, failed: Failed, events: list[ProviderEvent]) -> None:
        if not self._failed:
            self._failed = True
            self._rest, self._held = b"", []
            events.append(failed)

    def _line(self, line: bytes, events: list[ProviderEvent]) -> None:
        if self._failed or self.done:
            return
        if len(line) > LINE_LIMIT:
            self._fail(Failed("size"), events)
        elif not line:
            self._end_of_event(events)
        elif line.startswith(b"data:"):
            self._data(line[5:].removeprefix(b" "), events)
        elif line.startswith(b"event:"):
            self._event = line[6:].strip().decode("utf-8", "replace")
        elif line.startswith(b"error:"):
            self._fail(Failed("provider", _error_text(_parse(line[6:]) or line[6:])), events)
        elif line.startswith(b"{"):
            self._data(line, events)

    def _data(self, data: bytes, events: list[ProviderEvent]) -> None:
        """Takes one `data:` line. It is read at once where it stands for itself, else held for the end of the event."""
        if self._event == "error":
            self._fail(Failed("provider", _error_text(_parse(data) or data)), events)
        elif data.strip() == b"[DONE]":
            self._held_is_bad(events)
            self.done = not self._failed
        elif _is_object(payload := _parse(data)):
            self._held_is_bad(events)
            self._payload(payload, events)
        elif payload is None and data.strip() not in (b"", b"null"):
            self._held.append(data)
            self._held_size += len(data)
            if self._held_size > LINE_LIMIT:
                self._fail(Failed("size"), events)

    def _end_of_event(self, events: list[ProviderEvent]) -> None:
        if self._event == "error":
            self._fail(Failed("provider"), events)
        if len(self._held) > 1 and _is_object(payload := _parse(b"\n".join(self._held))):
            self._held, self._held_size = [], 0
            self._payload(payload, events)
        self._held_is_bad(events)
        self._event = ""

    def _held_is_bad(self, events: list[ProviderEvent]) -> None:
        if not self._held:
            return
        self._held, self._held_size = [], 0
        self.bad_frames += 1
        if self.bad_frames > BAD_FRAMES_ALLOWED:
            self._fail(Failed("frames"), events)

    def _payload(self, payload: dict[str, Any], events: list[ProviderEvent]) -> bool:
        """Reads one JSON object; what it does not understand it ignores. Says whether there was a choice."""
        if self._failed or self.done:
            return False
        if payload.get("error") or payload.get("object") == "error":
            self._fail(Failed("provider", _error_text(payload)), events)
            return False
        if _is_object(usage := payload.get("usage")):
            self._usage(usage)
        choices = payload.get("choices")
        choice = choices[0] if _is_list(choices) and choices else None
        if not _is_object(choice):
            return False
        self._choice(choice, events)
        return True

    def _choice(self, choice: dict[str, Any], events: list[ProviderEvent]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if _is_object(delta):
            self._delta(delta, events)
        elif text := _content(choice.get("text")):
            events.append(Text(text))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason in _BROKEN_OFF:
            self._fail(Failed(_BROKEN_OFF[reason]), events)
        elif isinstance(reason, str) and reason:
            self.finish_reason = reason

    def _delta(self, delta: dict[str, Any], events: list[ProviderEvent]) -> None:
        if thought := _content(delta.get("reasoning_content")) or _content(delta.get("reasoning")):
            events.append(Thinking(thought))
        if text := _content(delta.get("content")) or _content(delta.get("refusal")):
            events.append(Text(text))
        calls: object = delta.get("tool_calls")
        if not calls and delta.get("function_call"):
            calls = [{"index": 0, "function": delta["function_call"]}]
        if _is_list(calls):
            for call in calls:
                if self._tools.feed(call):
                    events.append(ToolDelta())

    def _usage(self, usage: dict[str, Any]) -> None:
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        self.prompt_tokens = prompt if isinstance(prompt, int) else self.prompt_tokens
        self.completion_tokens = completion if isinstance(completion, int) else self.completion_tokens


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _parse(data: bytes) -> object:
    """JSON of `data`, or None. Invalid UTF-8 and lone surrogates become U+FFFD."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        parsed = json.loads(data.decode("utf-8", "replace"))
        return json.loads(_SURROGATE.sub("\ufffd", json.dumps(parsed, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None


def _content(value: object) -> str:
    """Text of a `content` field: a string, or a list of parts."""
    if isinstance(value, str):
        return value
    parts = [part.get("text") for part in value if _is_object(part)] if _is_list(value) else []
    return "".join(text for text in parts if isinstance(text, str))


def _error_text(payload: object) -> str:
    """The words of an error object, for recognising what it is about."""
    if isinstance(payload, bytes):
        return payload[:_ERROR_TEXT].decode("utf-8", "replace")
    return json.dumps(payload, ensure_ascii=False)[:_ERROR_TEXT]
