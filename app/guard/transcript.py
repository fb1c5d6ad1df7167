"""Reads messages as clients send them, odd shapes included. Pure.

Every function takes any JSON value and gives a plain answer: what isn't there is empty, what can't be joined is
unknown. Used by `app.guard.scan` and `app.guard.session`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from app.guard.effects import Effect
from app.guard.notes import is_note, without_note

Message = Mapping[str, Any]
Role = Literal["user", "assistant", "tool", "system", "other"]

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "system",
    "developer": "system",
}


class SentCall(NamedTuple):
    """A tool call in a message; `arguments` is JSON text as a rule."""

    id: str
    name: str
    arguments: object
    effect: Effect | None = None


_JUNK = SentCall("", "", None)


def message_list(messages: object) -> list[Message] | None:
    """The messages, or None when that isn't a list of objects."""
    if not isinstance(messages, list):
        return None
    listed = cast(list[Any], messages)
    return listed if all(isinstance(one, dict) for one in listed) else None


def role_of(message: Message) -> Role:
    """Who speaks. A user message that is nothing but the guard's own note is nobody's: `tool`, which breaks nothing."""
    role = message.get("role")
    known = _ROLES.get(role, "other") if isinstance(role, str) else "other"
    return "tool" if known == "user" and is_note(message.get("content")) else known


def text_of(message: Message) -> str:
    """The text of a message without a note: of its text parts, one after another, when it comes in parts."""
    content = without_note(message.get("content"))
    if isinstance(content, str):
        return content
    return "".join(text for part in parts_of(content) if isinstance(text := part.get("text"), str) and is_text(part))


def parts_of(content: object) -> list[Message]:
    """The parts of a content that comes in parts."""
    return [part for part in cast(list[Any], content) if isinstance(part, dict)] if isinstance(content, list) else []


def is_text(part: Message) -> bool:
    """Whether a part is text."""
    return part.get("type") == "text"


def calls_of(message: Message) -> list[SentCall]:
    """The tool calls of an assistant's message."""
    calls = message.get("tool_calls")
    return [_call(one) for one in cast(list[Any], calls)] if isinstance(calls, list) else []


def answers_of(calls: Sequence[SentCall], following: Sequence[Message]) -> list[object] | None:
    """The results of a batch in the order of its calls, from the tool messages right behind it.

    Unknown (None) unless each call has an id of its own and exactly one result.
    """
    if len(following) != len(calls):
        return None
    results: dict[str, object] = {}
    for message in following:
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id or call_id in results:
            return None
        results[call_id] = without_note(message.get("content"))
    if results.keys() != {call.id for call in calls}:
        return None
    return [results[call.id] for call in calls]


def _call(item: object) -> SentCall:
    if not isinstance(item, dict):
        return _JUNK
    whole = cast(dict[str, Any], item)
    inner: Any = whole.get("function") or whole.get("custom")
    holder = cast(dict[str, Any], inner) if isinstance(inner, dict) else whole
    call_id, name = whole.get("id"), holder.get("name")
    return SentCall(
        call_id if isinstance(call_id, str) else "",
        name if isinstance(name, str) else "",
        holder["arguments"] if "arguments" in holder else holder.get("input"),
    )
