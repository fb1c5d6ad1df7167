"""What a verdict does to a client's request: a note goes with it, or it is refused. Pure.

Owns where the note stands and the refusal's shape; neither what the note says (`app.guard.notes`) nor whether the
mode asks for one. Called by the `/v1` path.
"""

from typing import Any, cast

from app.guard.notes import joined, note_for_request, refusal_text
from app.guard.scan import Verdict

ERROR_CODES = {"loop": "loop_detected", "stagnation": "stagnation_detected"}


def with_note(body: object, verdict: Verdict) -> object:
    """The request's body with the verdict's note in its last message, whatever that message's role.

    Text gets a blank line and the note, parts get one part more, anything else is followed by a user message that
    is the note: a trailing system message would be dropped or moved by many chat templates. `body` itself is left as
    it is; it is also what comes back when there is no trip, or no message to put a note into.
    """
    if verdict.trip is None or not isinstance(body, dict):
        return body
    whole = cast(dict[str, Any], body)
    messages = whole.get("messages")
    if not isinstance(messages, list) or not messages:
        return whole
    listed = cast(list[Any], messages)
    if not isinstance(listed[-1], dict):
        return whole
    return {
        **whole,
        "messages": [*listed[:-1], *_noted(cast(dict[str, Any], listed[-1]), note_for_request(verdict.trip))],
    }


def refusal(verdict: Verdict) -> dict[str, dict[str, str]]:
    """The body of the 400 that a tripped verdict is answered with, in OpenAI's shape.

    Raises:
        ValueError: when the verdict holds no trip.
    """
    if verdict.trip is None:
        raise ValueError("nothing to refuse")
    code = ERROR_CODES[verdict.trip.detector]
    return {"error": {"message": refusal_text(verdict.trip), "type": code, "code": code}}


def _noted(message: dict[str, Any], note: str) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{**message, "content": joined(content, note)}]
    if isinstance(content, list):
        return [{**message, "content": [*cast(list[Any], content), {"type": "text", "text": note}]}]
    return [message, {"role": "user", "content": note}]
