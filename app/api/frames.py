"""The frames of a turn: their names, their shapes, and their encoding as server-sent events.

One encoder makes every byte of a stream: the id is a number, the event a name from `FIELDS`, the data one line of
ASCII JSON, so that no text whatever can begin a line or an event of its own. docs/sse.md describes the same names and
fields (a test compares). `app.api.run_turn` builds frames, `app.api.stream` sends them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.rag.pieces import DocRef
from app.render.names import plain_name
from app.turns.event_log import Event

VERSION = 1

FIELDS: Mapping[str, tuple[str, ...]] = {
    "start": ("v", "turn_id", "chat_id", "user_message_id", "mode", "sources", "nearest", "chips", "looked_up"),
    "thinking": ("text",),
    "tool": ("id", "name", "args", "asked", "status", "summary", "ms", "sources", "looked_up"),
    "retry": ("attempt", "max", "delay_ms", "reason"),
    "delta": ("text",),
    "block": ("index", "html", "end"),
    "notice": ("code", "message"),
    "done": (
        "message_id",
        "html",
        "sources",
        "citations",
        "read_docs",
        "thinking_chars",
        "answer_chars",
        "total_ms",
        "retries",
        "recovered",
    ),
    "error": ("code", "message", "retryable"),
    "stopped": ("message_id", "answer_chars"),
}
"""Event → the fields of its data, in their order."""

TERMINAL = frozenset({"done", "error", "stopped"})

PING = b": ping\n\n"

Rows = Sequence[Mapping[str, Any]]

_NAMES = ("path", "title", "heading", "label")
"""What a row calls a document or a part of it by; a page shows them as they come."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An event without its id, which the event log gives."""

    event: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DoneCounts:
    """The numbers of a `done` frame."""

    thinking_chars: int
    answer_chars: int
    total_ms: int
    retries: int
    recovered: bool


def encode(event: Event) -> bytes:
    """The bytes of one event.

    Raises:
        ValueError: for a name that is not in `FIELDS`, or data that JSON can't hold.
    """
    if event.event not in FIELDS:
        raise ValueError(f"unknown event {event.event!r}")
    data = json.dumps(event.data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"id: {event.id}\nevent: {event.event}\ndata: {data}\n\n".encode("ascii")


@dataclass(frozen=True, slots=True)
class TurnIds:
    """What a turn's frames name. A turn without a chat (a `/v1` request) has no messages either."""

    turn_id: str
    chat_id: int | None
    user_message_id: int | None
    message_id: int | None


def start(
    ids: TurnIds,
    mode: str,
    sources: Rows,
    nearest: Rows,
    *,
    chips: Rows = (),
    looked_up: Mapping[str, Any] | None = None,
) -> Frame:
    """Retrieval is over: what the answer may cite, or what came nearest; `chips` are what the question was asked of,
    `looked_up` is what was searched or read for it (`app.edge.looked_up.FirstLook`)."""
    return Frame(
        "start",
        {
            "v": VERSION,
            "turn_id": ids.turn_id,
            "chat_id": ids.chat_id,
            "user_message_id": ids.user_message_id,
            "mode": mode,
            "sources": shown_rows(sources),
            "nearest": shown_rows(nearest),
            "chips": shown_rows(chips),
            "looked_up": looked_up,
        },
    )


def shown_rows(rows: Rows) -> list[dict[str, Any]]:
    """Rows with their documents' names and titles as they may be shown."""
    return [
        {key: plain_name(value) if key in _NAMES and isinstance(value, str) else value for key, value in row.items()}
        for row in rows
    ]


def delta(text: str) -> Frame:
    """A part of the answer."""
    return Frame("delta", {"text": text})


def thinking(text: str) -> Frame:
    """A part of the model's reasoning, raw."""
    return Frame("thinking", {"text": text})


def retry(data: Mapping[str, Any]) -> Frame:
    """A request failed before its first piece and is made again; only the known fields are copied."""
    return Frame("retry", {key: data.get(key) for key in FIELDS["retry"]})


def tool(data: Mapping[str, Any], asked: str, looked_up: Mapping[str, Any] | None = None) -> Frame:
    """A tool call begins or ends; only the known fields are copied. `asked` is what it is for, in words; `looked_up` is
    what `start` said, where this changes it."""
    known = {key: data.get(key) for key in FIELDS["tool"]}
    sources = known["sources"] and shown_rows(known["sources"])
    return Frame("tool", known | {"asked": asked, "sources": sources, "looked_up": looked_up})


def notice(code: str, message: str) -> Frame:
    """Something worth knowing that ends nothing."""
    return Frame("notice", {"code": code, "message": message})


def done(
    message_id: int | None,
    html: str,
    sources: Rows,
    *,
    citations: tuple[int, int],
    read_docs: Sequence[DocRef],
    counts: DoneCounts,
) -> Frame:
    """The answer is complete and stored; `citations` are (valid, dropped)."""
    return Frame(
        "done",
        {
            "message_id": message_id,
            "html": html,
            "sources": shown_rows(sources),
            "citations": {"valid": citations[0], "dropped": citations[1]},
            "read_docs": shown_rows([asdict(document) for document in read_docs]),
            **asdict(counts),
        },
    )


def error(code: str, message: str, *, retryable: bool) -> Frame:
    """The turn failed; `message` is Docent's own sentence, never a server's."""
    return Frame("error", {"code": code, "message": message, "retryable": retryable})


def stopped(message_id: int | None, answer_chars: int) -> Frame:
    """The turn was stopped; its text is kept."""
    return Frame("stopped", {"message_id": message_id, "answer_chars": answer_chars})
