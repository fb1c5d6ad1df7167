"""One application and one model server for many faults at once: each case is a question at an address of its own.

The server answers with a tool call until the round comes in which the fault is to happen. The case's next question is
answered by the same server, in good health.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.rag.llm import chat_for_endpoint
from app.rag.pieces import ChatFn, ChatMessages, ContentFilter, StreamPiece, ToolCallPiece
from app.settings import Settings
from app.upstream.client import ClientPool, Endpoint
from tests.fault_catalogue import Case
from tests.fault_server import Fault, FaultServer, Reply, Seen
from tests.faults import DONE, FAULTS, frame

Round = Literal["first", "middle", "last"]
ROUNDS: tuple[Round, ...] = ("first", "middle", "last")
MAX_ROUNDS = 2
BEFORE: Mapping[Round, str] = {"first": "", "middle": "Looking.", "last": "Looking. Looking."}
"""What the rounds before the fault have said."""

AGAIN = "and again"
_QUESTION = re.compile(r"Case (\d+)\b")


def is_round(round_: Round, body: Mapping[str, Any]) -> bool:
    """Whether a request is the round's, or a later one of its turn."""
    if round_ == "first":
        return True
    if round_ == "last":
        return "tools" not in body
    return any(message["role"] == "tool" for message in body["messages"])


def asked_again(body: Mapping[str, Any]) -> bool:
    """Whether a request belongs to the question after the fault."""
    last = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
    return AGAIN in last


@dataclass
class Played:
    """A case in a round: its requests there, and a sign that the first of them has come."""

    number: int
    case: Case
    round: Round
    requests: list[Seen] = field(default_factory=list)
    met: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def path(self) -> str:
        return f"case-{self.number}"

    @property
    def question(self) -> str:
        return f"Case {self.number}: how often are backups made?"

    async def serve(self, reply: Reply) -> None:
        """Answers one request of the case."""
        body = reply.seen.body
        if asked_again(body):
            await FAULTS["ok"](reply)
        elif is_round(self.round, body):
            self.requests.append(reply.seen)
            self.met.set()
            reply.nth = len(self.requests)
            await self.case.serve(reply)
        else:
            await _call(reply)


async def _call(reply: Reply) -> None:
    """The rounds before: a word, and a search with other words than the one before."""
    results = sum(message["role"] == "tool" for message in reply.seen.body["messages"])
    function = {"name": "search", "arguments": f'{{"query": "backups of volume {results}"}}'}
    await reply.head()
    await reply.send(frame("Looking."), frame(tool_calls=[{"index": 0, "id": "call00001", "function": function}]))
    await reply.send(DONE)
    await reply.end()


def played(cases: Sequence[tuple[Case, Round]]) -> list[Played]:
    return [Played(number, case, round_) for number, (case, round_) in enumerate(cases)]


def faults_of(plays: Sequence[Played]) -> dict[str, Fault]:
    return {play.path: play.serve for play in plays}


class ChatOfCases:
    """A `chat_for`: each turn talks to the address of the case that its question names."""

    def __init__(self, plays: Sequence[Played], port: int) -> None:
        self._plays = plays
        self._server = FaultServer(port)
        self.pool = ClientPool()

    def __call__(self, settings: Settings) -> ChatFn:
        bound: dict[bool, ChatFn] = {}

        async def chat(
            messages: ChatMessages,
            *,
            tools: Sequence[Mapping[str, Any]] | None,
            content_filter: ContentFilter | None = None,
        ) -> AsyncIterator[StreamPiece | ToolCallPiece]:
            body = {"messages": messages, **({"tools": tools} if tools else {})}
            asked = [str(message["content"]) for message in messages if message["role"] == "user"][-1]
            found = _QUESTION.search(asked)
            assert found is not None, asked
            play = self._plays[int(found[1])]
            faulty = is_round(play.round, body) and AGAIN not in asked
            if faulty not in bound:
                bound[faulty] = chat_for_endpoint(self._endpoint(play, faulty), self.pool)
            if faulty and play.case.requests == 0:  # no request will tell the server
                play.met.set()
            async for piece in bound[faulty](messages, tools=tools, content_filter=content_filter):
                yield piece

        return chat

    def _endpoint(self, play: Played, faulty: bool) -> Endpoint:
        changes: dict[str, Any] = {"retry_max": 1, "first_token_s": 30.0, "idle_s": 30.0, "connect_s": 10.0}
        if faulty:
            changes |= play.case.endpoint
        base_url = changes.pop("base_url", self._server.endpoint(play.path).base_url)
        endpoint = self._server.endpoint(play.path, **changes)
        return Endpoint(**{**_fields(endpoint), "base_url": base_url.format(port=self._server.port)})


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    return {name: getattr(endpoint, name) for name in Endpoint.__dataclass_fields__}
