"""Flows of the mock model for documents that are read whole. Imported by `tests.e2e.mock_llm`.

What it notes of a section and what it makes of notes is plain quoting (`mock_flows.answer`); these rows make sections
fail or take their time. A trigger stands in the document's title, and so in the question that names it.
"""

from collections.abc import AsyncIterator

from app.rag.whole_prompts import parse_section
from tests.e2e.mock_flows import Call, Cut, Delta, answer, flow, plain, say

BROKEN_SECTION = 2
"""The section that `e2e-section-broken` never gets to the end of."""

SLOW_RATE = 6.0


@flow("e2e-section-broken")
async def _broken_section(call: Call) -> AsyncIterator[Delta]:
    section = parse_section(call.messages)
    if section is not None and section[0] == BROKEN_SECTION:
        async for delta in say("The beginning of a note that", call.rate):
            yield delta
        raise Cut
    async for delta in plain(call):
        yield delta


@flow("e2e-section-slow")
async def _slow_section(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(answer(call), SLOW_RATE):
        yield delta
