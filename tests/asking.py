"""Asking the model client a question of a server that misbehaves, and what came out of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from app.rag.errors import LLMError
from app.rag.llm import chat_stream, chat_stream_retried
from app.rag.pieces import StreamPiece, Strip, ToolCallPiece
from app.upstream.client import ClientPool
from tests.fault_server import FaultServer, fault_server
from tests.faults import FAULTS

QUESTION = [{"role": "user", "content": "?"}]
T = TypeVar("T")


def serve(test: Callable[[FaultServer, ClientPool], Awaitable[T]]) -> T:
    async def run() -> T:
        async with fault_server(FAULTS) as server:
            pool = ClientPool()
            try:
                return await test(server, pool)
            finally:
                await pool.aclose()

    return asyncio.run(asyncio.wait_for(run(), 60))


class Outcome:
    """What came out of one request."""

    def __init__(self) -> None:
        self.pieces: list[StreamPiece | ToolCallPiece] = []
        self.error: LLMError | None = None

    def text(self, kind: str = "content") -> str:
        return "".join(p.text for p in self.pieces if isinstance(p, StreamPiece) and p.kind == kind)

    def data(self, kind: str) -> list[Any]:
        return [p.data for p in self.pieces if isinstance(p, StreamPiece) and p.kind == kind]

    @property
    def code(self) -> str | None:
        if self.error is None:
            return None
        reason = self.error.reason
        return f"{self.error.code}.{reason}" if reason else self.error.code


async def collect(stream: Any) -> Outcome:
    outcome = Outcome()
    try:
        async with aclosing(stream):
            async for piece in stream:
                outcome.pieces.append(piece)
    except LLMError as error:
        outcome.error = error
    return outcome


def ask(fault: str, *, retried: bool = False, **changes: Any) -> tuple[Outcome, FaultServer]:
    """One question to a fault."""

    async def test(server: FaultServer, pool: ClientPool) -> tuple[Outcome, FaultServer]:
        call = chat_stream_retried if retried else chat_stream
        endpoint = server.endpoint(fault, **changes)
        return await collect(call(endpoint, QUESTION, tools=None, clients=pool)), server

    return serve(test)


class HoldingFilter:
    """Holds the last character, removes every `x`, and counts."""

    def __init__(self) -> None:
        self.stripped_chars = 0
        self.resets = 0
        self._held = ""
        self._strips: list[Strip] = []

    def feed(self, text: str) -> str:
        kept = self._held + text.replace("x", "")
        if removed := text.count("x"):
            self.stripped_chars += removed
            self._strips += [Strip("x", 1, "x'\n", terminated=True)] * removed
        self._held = kept[-1:]
        return kept[:-1]

    def flush(self) -> str:
        held, self._held = self._held, ""
        return held

    def reset(self) -> None:
        self.resets += 1
        self._held = ""

    def drain_strips(self) -> list[Strip]:
        strips, self._strips = self._strips, []
        return strips


def ask_filtered(fault: str, **changes: Any) -> tuple[Outcome, HoldingFilter]:
    async def test(server: FaultServer, pool: ClientPool) -> tuple[Outcome, HoldingFilter]:
        holding = HoldingFilter()
        stream = chat_stream_retried(
            server.endpoint(fault, **changes), QUESTION, tools=None, content_filter=holding, clients=pool
        )
        return await collect(stream), holding

    return serve(test)


async def eventually(condition: Callable[[], bool], within_s: float = 2.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
