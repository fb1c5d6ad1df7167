"""What a streamed completion said, read through the official client."""

from collections.abc import Iterable
from typing import Any

import openai


def said(parts: Any) -> str:
    """What a streamed completion says."""
    return "".join(choice.delta.content or "" for part in parts for choice in part.choices)


def said_until_error(parts: Iterable[Any]) -> tuple[str, openai.APIError | None]:
    """What a streamed completion says before it breaks off, and with what."""
    seen: list[Any] = []
    try:
        for part in parts:
            seen.append(part)
    except openai.APIError as error:
        return said(seen), error
    return said(seen), None
