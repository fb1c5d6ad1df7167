"""A model's stream, made and read: frames as servers send them, and what the reader makes of them."""

import json
from typing import Any

from app.rag.sse_reader import SseReader, Text


def chunk(content: str | None = None, **delta: Any) -> dict[str, Any]:
    finish = delta.pop("finish", None)
    body = {**({"content": content} if content is not None else {}), **delta}
    return {"choices": [{"index": 0, "delta": body, "finish_reason": finish}]}


def frame(payload: object, end: bytes = b"\n\n") -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + end


def read(*parts: bytes) -> tuple[SseReader, list[Any]]:
    reader = SseReader()
    events: list[Any] = []
    for part in parts:
        events += reader.feed(part)
    return reader, events + reader.flush()


def text_of(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))
