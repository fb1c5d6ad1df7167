"""Which conversation a client's request belongs to, when all there is to go by is the request. Pure.

Called by the `/v1` path; a log keeps only the session's short key.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, cast

from app.guard.transcript import Message, message_list, parts_of, role_of, text_of

SESSION_CHARS = 128

_NOT_PLAIN = re.compile(r"[^a-z0-9._-]+")
_MOVING_LINES = ("Current date:", "Current time:", "Current terminal line count")
"""Lines that clients put into their system text anew with every request."""


def session_id(header: str | None, messages: object) -> str | None:
    """The session that a client names in its header, else one derived from how the conversation begins.

    A header is lower-cased, runs of characters other than letters, digits, dots, dashes and underscores become one
    dash, and 128 characters are kept. Derived ids are `auto-` and 32 hex digits. None when there is nothing to go by.
    """
    named = _NOT_PLAIN.sub("-", (header or "").strip().lower()).strip("-")[:SESSION_CHARS]
    return named or _derived(message_list(messages) or [])


def _derived(messages: list[Message]) -> str | None:
    """The first user message stays the same however long the conversation grows, and so does what stands before it."""
    first = next((at for at, message in enumerate(messages) if role_of(message) == "user"), len(messages))
    system = "\n".join(text_of(one) for one in messages[:first] if role_of(one) == "system")
    lasting = "\n".join(line for line in system.split("\n") if not line.strip().startswith(_MOVING_LINES))
    user: Message = messages[first] if first < len(messages) else {}
    parts = [lasting, text_of(user), *_images(user)]
    if not any(part.strip() for part in parts):
        return None
    return f"auto-{sha256(chr(0).join(parts).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _images(message: Message) -> Iterator[str]:
    for part in parts_of(message.get("content")):
        image: Any = part.get("image_url")
        url = cast(dict[str, Any], image).get("url") if isinstance(image, dict) else image
        if isinstance(url, str):
            yield url
