"""Faulty turns, many at once, and what is wrong with how they ended."""

import asyncio
import logging
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from app.edge.deps import Services
from app.main import create_app
from app.rag.prompts import CORRECTION_LINE
from app.settings import Settings
from app.store import chats, turns
from app.store.models.setup import LOCAL_USER_ID
from tests.asgi import Client, serving
from tests.fault_catalogue import Case
from tests.fault_server import PROBED_BY_TURNS, fault_server
from tests.faults import SECRET_TEXT
from tests.integration.fault_rounds import AGAIN, BEFORE, MAX_ROUNDS, ChatOfCases, Played, Round, faults_of, played
from tests.scripted import ScriptedSearch, hit
from tests.sse import Frame, text_of

AT_ONCE = 6
TICK_S = 0.05
WHOLE_TURN_S = 90.0
LIMIT_S = 400
"""Seconds for all turns together, on a machine that has other work, too."""

OUTCOMES = {"ok": "ok", "malformed_reply": "malformed"}


@dataclass(frozen=True)
class Ended:
    """What a turn left behind."""

    frames: list[Frame]
    turn: turns.TurnRow
    answer: chats.MessageRow


def play_all(
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    named: Sequence[tuple[str, Case]],
    round_: Round,
    *,
    again: bool = True,
) -> list[str]:
    """Plays the cases in a round, each followed by a healthy turn where `again`; what is wrong, a line each."""
    caplog.set_level(logging.INFO)
    plays = played([(case, round_) for _, case in named])
    problems: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        chat_for = ChatOfCases(plays, port)
        values = {"llm_base_url": f"http://127.0.0.1:{port}/v1", "llm_model": "m", "agent_max_rounds": MAX_ROUNDS}
        searcher = ScriptedSearch(hit(1), hit(2), hit(3))
        app = create_app(settings.model_copy(update=values), chat_for=chat_for, searcher=searcher)

        async def run() -> None:
            gate = asyncio.Semaphore(AT_ONCE)
            async with fault_server(faults_of(plays), listening, PROBED_BY_TURNS), serving(app) as client:
                try:
                    found = await asyncio.gather(*[play_one(client, play, gate, again) for play in plays])
                finally:
                    await chat_for.pool.aclose()
            problems.extend(f"{name}: {said}" for (name, _), said in zip(named, found, strict=True) if said)

        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    return [*problems, *wrong_log(caplog, (1 + again) * len(plays))]


def wrong_log(caplog: pytest.LogCaptureFixture, turns_: int) -> list[str]:
    """One line for each turn, and no error that nobody handled."""
    said = [record.getMessage() for record in caplog.records]
    ids = re.findall(r"^chat_turn turn=(\w+)", "\n".join(said), re.MULTILINE)
    problems = [f"error: {record.getMessage()}" for record in caplog.records if record.levelno >= logging.ERROR]
    if (len(ids), len(set(ids))) != (turns_, turns_):
        problems.append(f"{len(ids)} lines for {len(set(ids))} of {turns_} turns")
    return problems


async def play_one(client: Client, play: Played, gate: asyncio.Semaphore, again: bool) -> str:
    """What is wrong with the case; empty when nothing is."""
    async with gate:
        try:
            async with asyncio.timeout(WHOLE_TURN_S):
                ended = await one_turn(client, play)
                healthy = [await ask(client, f"{play.question} {AGAIN}", chat_id=ended.turn.chat_id)] if again else []
        except TimeoutError:
            return f"no end in time (requests in the round: {len(play.requests)})"
    wrong = [*wrong_end(play, ended), *wrong_requests(play)]
    return "; ".join([*wrong, *(said for one in healthy for said in not_well(one))])


async def one_turn(client: Client, play: Played) -> Ended:
    """The case's turn; from the first request of its round on it has its limit and a second."""
    turn = asyncio.create_task(ask(client, play.question))
    met = asyncio.create_task(play.met.wait())
    await asyncio.wait({turn, met}, return_when=asyncio.FIRST_COMPLETED)
    met.cancel()
    try:
        return await within(turn, play.case.limit_s + 1)
    finally:
        turn.cancel()


async def within(turn: "asyncio.Task[Ended]", seconds: float) -> Ended:
    """The turn's end, by a deadline counted in moments in which this loop could run: a machine that is busy elsewhere
    takes none of them.

    Raises:
        TimeoutError: when there is no end by then.
    """
    for _ in range(round(seconds / TICK_S)):
        done, _ = await asyncio.wait({turn}, timeout=TICK_S)
        if done:
            return turn.result()
    raise TimeoutError


async def ask(client: Client, question: str, **more: Any) -> Ended:
    reply = await client.ask(question, **more)
    assert reply.status == 200
    frames = await reply.all_frames()
    turn_id = reply.headers["x-turn-id"]
    services: Services = client.app.state.docent

    def read(session: Any) -> tuple[turns.TurnRow, chats.MessageRow | None]:
        return turns.get_turn(session, LOCAL_USER_ID, turn_id), chats.answer_of(session, LOCAL_USER_ID, turn_id)

    turn, answer = await services.database.aread(read)
    assert answer is not None
    return Ended(frames, turn, answer)


def wrong_end(play: Played, ended: Ended) -> list[str]:
    """How the turn's end differs from the documented one."""
    end, frames = play.case.end, ended.frames
    said = " ".join(f"{BEFORE[play.round]} {play.case.said}".split())
    problem = ended.turn.numbers["problem"] if ended.turn.numbers and "problem" in ended.turn.numbers else {}
    code = ".".join(str(problem[key]) for key in ("code", "reason") if problem.get(key)) or "ok"
    last = frames[-1]
    states = ("done", "complete") if end == "ok" else ("error", "error")
    expected = {
        "end": (code, end),
        "last frame": (last.event, "done" if end == "ok" else "error"),
        "terminal frames": ([f.event for f in frames].count("done") + [f.event for f in frames].count("error"), 1),
        "states": ((ended.turn.state, ended.answer.status), states),
        "outcome": (ended.turn.outcome, OUTCOMES.get(end, "error")),
        "text": (" ".join(ended.answer.content.split()), said),
        "deltas": (text_of(frames), ended.answer.content),
        "a secret": (leaked(frames), []),
    }
    if end != "ok":
        expected["code"] = (last.data["code"], end.split(".")[0])
        expected["sentence"] = ("{" in last.data["message"], False)
    return [f"{name} is {is_!r}, not {should!r}" for name, (is_, should) in expected.items() if is_ != should]


def leaked(frames: list[Frame]) -> list[str]:
    """What the server alone said and nobody should read."""
    shown = str([frame.data for frame in frames])
    return [
        word for word in (*SECRET_TEXT.split()[2:], "pw@", "<|tool_call_start|>", "schl\u00fcssel") if word in shown
    ]


def wrong_requests(play: Played) -> list[str]:
    """How the round's requests differ from what is allowed: their number, one system message, no tools at the end."""
    problems: list[str] = []
    if len(play.requests) > play.case.requests:
        problems.append(f"{len(play.requests)} requests in the round, not {play.case.requests}")
    for seen in play.requests:
        messages = seen.body["messages"]
        if [message["role"] for message in messages].count("system") != 1:
            problems.append("not one system message")
        if CORRECTION_LINE in str(messages) and "tools" in seen.body:
            problems.append("tools in the recovery")
    return problems


def not_well(again: Ended) -> list[str]:
    ended = (again.frames[-1].event, again.turn.state, again.answer.content)
    return [] if ended == ("done", "done", "Hello") else [f"the next turn ended as {ended!r}"]
