"""What a text is in tokens, by estimate, and what was counted for a request. Pure.

Everything that has a budget of tokens estimates with the one function here. Whether a count is believable is judged in
`app.rag.space`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CHARS_PER_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Reading:
    """One request as it was sent, and how many prompt tokens the server reported for it."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    reported: int | None


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, rather too many than too few: one for every 3.5 ASCII characters (prose has about 4, code and
    tables about 3), one for every other character."""
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain / _CHARS_PER_TOKEN) + len(text) - plain
