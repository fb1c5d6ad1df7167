"""Rows of the mock model's table about citations: markers that are right, wrong, invented and missing.

`e2e-cite` says a sentence of each passage with its own marker; then, of the first passage, one with another's marker,
one with a marker that no passage has, and one without.
"""

import re
from collections.abc import AsyncIterator

from app.rag.prompts import GivenPassage, parse_passages
from tests.e2e.mock_flows import Call, Delta, flow, say

INVENTED = 97
UNSAID = "Bananas ripen faster beside apples on a sunny windowsill"
"""What no passage says; it stands with another's marker."""
UNCITED = "Nobody measured how loud the cellar was that day"


def sentence_of(passage: GivenPassage) -> str:
    """The passage's longest whole sentence, without its full stop."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", passage.text):
        flat = " ".join(line for line in paragraph.splitlines() if not line.startswith(("#", "|")))
        found += [part.strip() for part in re.split(r"(?<=[.!?])\s+", flat)]
    return max(found, key=lambda part: (part.endswith("."), len(part))).rstrip(".!?")


def cited_answer(passages: list[GivenPassage]) -> str:
    """The answer of the row."""
    right = [f"{sentence_of(passage)} [{passage.n}]." for passage in passages]
    wrong = f"{UNSAID} [{passages[0].n}]."
    invented = f"It has been so since the very beginning [{INVENTED}]."
    return " ".join([*right, wrong, invented, f"{UNCITED}."])


@flow("e2e-cite")
async def _citing(call: Call) -> AsyncIterator[Delta]:
    passages = list(parse_passages(call.messages))
    async for delta in say(cited_answer(passages) if passages else "Nothing was given.", call.rate):
        yield delta
