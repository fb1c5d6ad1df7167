"""Flows of the mock model that leak tool syntax into the answer. Imported by `tests.e2e.mock_llm`.

Each one answers properly once the correction line stands in the system message, but for `e2e-scaffold-twice`.
"""

from collections.abc import AsyncIterator

from app.rag.prompts import CORRECTION_LINE
from tests.e2e.mock_flows import Call, Delta, flow, plain, say

LEAK = "<|tool_call_start|>[read(path='/homelab/backup-notes.md')]<|tool_call_end|>"


@flow("e2e-scaffold-once")
async def _once(call: Call) -> AsyncIterator[Delta]:
    if CORRECTION_LINE in call.system:
        async for delta in plain(call):
            yield delta
        return
    async for delta in say(LEAK, call.rate):
        yield delta


@flow("e2e-scaffold-twice")
async def _twice(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(LEAK, call.rate):
        yield delta


@flow("e2e-scaffold-mixed")
async def _mixed(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(f"Before the call. {LEAK} After the call.", call.rate):
        yield delta


@flow("e2e-scaffold-split")
async def _split(call: Call) -> AsyncIterator[Delta]:
    for character in f"Split {LEAK} apart.":
        yield {"content": character}


@flow("e2e-scaffold-open")
async def _open(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(f"Cut off: {LEAK[:40]}", call.rate):
        yield delta


@flow("e2e-think-scaffold")
async def _think(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(f"I would call {LEAK} here.", call.rate, "reasoning_content"):
        yield delta
    async for delta in plain(call):
        yield delta
