"""Somebody else's chat completion on its way through: scaffolding leaves the content, every other byte stays. Pure.

Owns finding the content in the chunks of a stream or in a whole reply; what scaffolding is, `app.rag.scaffolding`
knows. Lines that hold no scaffolding are passed on as they came. Used by `app.api.openai_proxy`, where a client offered
no tools: then markup in the content is nothing the client could run. The format is OpenAI's: `data: {json}` lines, the
last one `data: [DONE]`.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from app.rag.pieces import Strip
from app.rag.scaffolding import ScaffoldingFilter

LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of a line without end that are held; a longer one is passed on unread."""

CHOICES = 128
"""Choices of one request that get a filter; the protocol's own limit."""

_DONE, _DONE_CHARS = b"[DONE]", 20


class StreamRelay:
    """One streamed reply. `usage` is what it said of itself so far (None: nothing); `is_complete`: its last line came.

    Args:
        filtered: Otherwise every byte stays, and only the usage is read.
    """

    def __init__(self, *, filtered: bool = True) -> None:
        self.usage: Mapping[str, Any] | None = None
        self.is_complete = False
        self._filtered = filtered
        self._filters: dict[int, ScaffoldingFilter] = {}
        self._buffer = b""
        self._unread = False
        self._envelope: dict[str, Any] = {}

    @property
    def stripped_chars(self) -> int:
        """Characters removed so far, over all choices."""
        return sum(one.stripped_chars for one in self._filters.values())

    def drain_strips(self) -> list[Strip]:
        """What was removed since the last call."""
        return [strip for one in self._filters.values() for strip in one.drain_strips()]

    def feed(self, data: bytes) -> bytes:
        """Takes bytes as they come, gives those that may go on now: whole lines."""
        *lines, rest = (self._buffer + data).split(b"\n")
        out = [self._line(line) + b"\n" for line in lines]
        if self._unread or len(rest) > LINE_LIMIT:
            self._unread = True
            out.append(rest)
            rest = b""
        self._buffer = rest
        return b"".join(out)

    def flush(self) -> bytes:
        """The end of the stream: a last line without its end, and what the filters still hold."""
        last = self._line(self._buffer) if self._buffer else b""
        self._buffer = b""
        held = self._held_chunks()
        return (last + b"\n\n" if last and held else last) + held

    def cut(self) -> bytes:
        """The end of a stream that broke off: half a line would keep a client from reading what follows."""
        self._buffer = b""
        return self.flush()

    def _line(self, line: bytes) -> bytes:
        if self._unread:
            self._unread = False
            return line
        if not line.startswith(b"data:"):
            return line
        if len(line) < _DONE_CHARS and line[5:].strip() == _DONE:
            self.is_complete = True
            return self._held_chunks() + line
        if not (self._filtered or b'"usage"' in line):
            return line
        payload = line[5:].strip()
        chunk = _object(payload)
        if chunk is None:
            return line
        return line if not self._filter_chunk(chunk) else b"data: " + _dumped(chunk) + _ending(line)

    def _filter_chunk(self, chunk: dict[str, Any]) -> bool:
        """Filters the contents of a chunk in place; whether anything changed."""
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = cast("dict[str, Any]", usage)
        if not self._filtered:
            return False
        self._envelope = {key: chunk[key] for key in ("id", "object", "created", "model") if key in chunk}
        changed = _clean_error(chunk)
        for choice in _objects(chunk.get("choices")):
            index = choice.get("index", 0)
            delta = choice.get("delta")
            finished = isinstance(choice.get("finish_reason"), str)
            if not isinstance(index, int) or not isinstance(delta, dict):
                continue
            changed = self._filter_delta(index, cast("dict[str, Any]", delta), finished) or changed
        return changed

    def _filter_delta(self, index: int, delta: dict[str, Any], finished: bool) -> bool:
        content = delta.get("content")
        said = content if isinstance(content, str) else ""
        if not said and not (finished and index in self._filters):
            return False
        content_filter = self._filters.get(index)
        if content_filter is None:
            if len(self._filters) >= CHOICES:
                return False
            content_filter = self._filters[index] = ScaffoldingFilter()
        kept = content_filter.feed(said) if said else ""
        if finished:
            kept += content_filter.flush()
        if kept == said:
            return False
        delta["content"] = kept
        return True

    def _held_chunks(self) -> bytes:
        """What the filters held at the end of a stream that named no finish reason, as chunks of its own kind."""
        chunks: list[bytes] = []
        for index, content_filter in self._filters.items():
            if kept := content_filter.flush():
                choice = {"index": index, "delta": {"content": kept}, "finish_reason": None}
                chunks.append(b"data: " + _dumped({**self._envelope, "choices": [choice]}) + b"\n\n")
        return b"".join(chunks)


class WholeReply:
    """One reply that came as a whole: `body` is what goes on. An unknown shape goes on as it came, and so does any
    where nothing is to be `filtered`."""

    def __init__(self, body: bytes, *, filtered: bool = True) -> None:
        self.body = body
        self.usage: Mapping[str, Any] | None = None
        self.stripped_chars = 0
        self.strips: list[Strip] = []
        reply = _object(body)
        if reply is None:
            return
        if isinstance(usage := reply.get("usage"), dict):
            self.usage = cast("dict[str, Any]", usage)
        if not filtered:
            return
        for choice in _objects(reply.get("choices"))[:CHOICES]:
            self._filter(choice)
        if _clean_error(reply) or self.stripped_chars:
            self.body = _dumped(reply)

    def _filter(self, choice: dict[str, Any]) -> None:
        message = choice.get("message")
        if not isinstance(message, dict):
            return
        message = cast("dict[str, Any]", message)
        if isinstance(content := message.get("content"), str):
            message["content"], chars, strips = clean_text(content)
            self.stripped_chars += chars
            self.strips += strips


def clean_text(text: str) -> tuple[str, int, list[Strip]]:
    """`text` without scaffolding, how many characters that took, and what they were."""
    content_filter = ScaffoldingFilter()
    clean = content_filter.feed(text) + content_filter.flush()
    return clean, content_filter.stripped_chars, content_filter.drain_strips()


def _clean_error(reply: dict[str, Any]) -> bool:
    """Takes scaffolding out of an error that came in place of an answer, whose sentence may quote what the model said;
    whether there was any."""
    error: object = reply.get("error")
    holder, key = (cast("dict[str, Any]", error), "message") if isinstance(error, dict) else (reply, "error")
    said = holder.get(key)
    if not isinstance(said, str) or (clean := clean_text(said)[0]) == said:
        return False
    holder[key] = clean
    return True


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        value: object = orjson.loads(payload)
    except orjson.JSONDecodeError:
        try:  # half characters and what else only the slow one takes
            value = json.loads(payload)
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _dumped(value: Mapping[str, Any]) -> bytes:
    """ASCII, so that half characters a server sent go on as it spelt them."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _ending(line: bytes) -> bytes:
    return b"\r" if line.endswith(b"\r") else b""
