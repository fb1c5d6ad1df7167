"""What the guard says to a model, in words of its own. Pure.

Every note begins with one fixed marker, so that a note in a conversation is known for one and never judged as part of
it. Client-chosen names enter a note bounded and reduced to plain characters: no tool syntax ever stands in one.
"""

from typing import Any, cast

from app.guard.detectors import Trip
from app.guard.signature import bounded

MARKER = "[Docent loop guard]"
NOTE_LIMIT = 500

_GAP = "\n\n"
_ADVICE = "Take another approach, or tell the user what is blocking you."


def note_for_request(trip: Trip) -> str:
    """The note that goes out with a client's request; the batch it names has been run."""
    if trip.signature is None:
        return _stagnation(trip)
    came = (
        "The results keep changing, but the task has not moved on. More of the same will not finish it."
        if trip.moved
        else "Nothing new came of it, and another try will not change that."
    )
    return (
        f"{MARKER} The tool calls {bounded(trip.signature)} were made {trip.repeat_count} times in a row, "
        f"with nothing else in between. {came} {_ADVICE}"
    )


def note_for_turn(trip: Trip) -> str:
    """The note that stands in a turn for the result of a call that was not run (`requery`: or brought nothing new)."""
    if trip.signature is None:
        return _stagnation(trip)
    if trip.detector == "requery":
        return (
            f"{MARKER} A search like this one was already made for this question, and the passages it finds are "
            "already above. Answer from them, or look for something else."
        )
    return (
        f"{MARKER} Not run: the tool calls {bounded(trip.signature)} were asked for {trip.repeat_count} times in a "
        "row, and their results are already above. Another try will not change them. Answer from what you have read, "
        "or look elsewhere."
    )


def refusal_text(trip: Trip) -> str:
    """Why a request was not sent, for the person at the client."""
    if trip.signature is None:
        what = f"the same reply came {trip.repeat_count} times, the limit is {trip.threshold}"
    else:
        what = f"the tool calls {bounded(trip.signature)} were made {trip.repeat_count} times in a row"
    return (
        f"The loop guard refused this request: {what}. To have such requests sent on with a note to the model, "
        "set the loop guard to note on the settings page (LOOP_GUARD_MODE=note)."
    )


def without_note(content: object) -> object:
    """A message's content as it was before a note was put into it."""
    if isinstance(content, str):
        return _text_before(content)
    if isinstance(content, list) and content:
        parts = cast(list[Any], content)
        if is_note(_part_text(parts[-1])):
            return parts[:-1]
    return cast(object, content)


def is_note(content: object) -> bool:
    """Whether a content is a note and nothing else."""
    return isinstance(content, str) and content.startswith(MARKER) and len(content) <= NOTE_LIMIT


def joined(text: str, note: str) -> str:
    """The text, a blank line, the note."""
    return f"{text}{_GAP}{note}" if text else note


def _stagnation(trip: Trip) -> str:
    return (
        f"{MARKER} You have given the same reply {trip.repeat_count} times; the limit is {trip.threshold}. "
        f"Saying it again will not help. {_ADVICE}"
    )


def _text_before(text: str) -> str:
    at = text.rfind(MARKER, max(0, len(text) - NOTE_LIMIT))
    if at == 0:
        return ""
    return text[: at - len(_GAP)] if at > 0 and text[at - len(_GAP) : at] == _GAP else text


def _part_text(part: object) -> object:
    return cast(dict[str, Any], part).get("text") if isinstance(part, dict) else None
