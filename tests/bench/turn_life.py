"""The life of turns at its edges, over real sockets with real processes: stopped, cut off and resumed, killed.

    python -m tests.bench.turn_life [--stops 100] [--turns 10] [--cuts 50] [--kills 14] [--seed 1]

Prints `name value limit`; 1 when a limit is missed. The mock model keeps its own journal (when it was asked, left, and
how much it had said when), and the reader keeps its own, so the server does not mark its own work. Every random point
comes from the seed.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.stream_bench import Result, differing_bytes, fill, get, mock_model, percentile
from tests.bench.turn_client import Turn, acknowledge, ask, read, request, stop
from tests.server import ServerProcess

AT_ONCE = 10
RATE = 20.0
SEEN_S = 10.0
"""How long the mock may take to see that it was left before a stop counts as missed."""

Journal = Mapping[str, Any]


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--kills", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder, mock_model(RATE) as mock:
        data = Path(folder) / "data"
        fill(data)
        settings = {"LLM_BASE_URL": f"{mock}/v1", "LLM_MODEL": "mock-model"}
        with ServerProcess(data, **settings) as server:
            if options.stops:
                results += stops(server.url, mock, options.stops, chance)
            if options.turns:
                results += asyncio.run(reconnects(server.url, options.turns, options.cuts, chance))
        if options.kills:
            results += kills(data, mock, settings, options.kills, chance)
    for result in results:
        print(result.name, round(result.value, 3), "-" if result.limit is None else result.limit, flush=True)
    return int(any(one.limit is not None and one.value > one.limit for one in results))


def journal_of(mock: str) -> dict[str, Journal]:
    """What the mock noted, by the question's own mark (its last word)."""
    records = get(f"{mock}/__requests")["requests"]
    return {record["body"]["messages"][-1]["content"].split()[-1]: record for record in records}


@dataclass(frozen=True)
class Stopped:
    """One stop: the turn's mark, when Stop was pressed, and how long its reader waited for the end (seconds)."""

    mark: str
    pressed_at: float
    reader_s: float


def stops(url: str, mock: str, count: int, chance: random.Random) -> list[Result]:
    """Stop pressed at any point of a turn, ten turns at a time: when did the model's socket close?"""
    asyncio.run(ask(url, Turn("where is the data kept? warm-up")))
    pressed = asyncio.run(press_all(url, count, chance))
    deadline = time.monotonic() + SEEN_S
    while True:
        journal = journal_of(mock)
        asked = [(one, journal[one.mark]) for one in pressed if one.mark in journal]
        missed = sum(record["disconnected_at"] is None for _, record in asked)
        if not missed or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    closed = [
        (record["disconnected_at"] - one.pressed_at) * 1000
        for one, record in asked
        if record["disconnected_at"] is not None
    ]
    return [
        Result("stops", len(pressed)),
        Result("stops_before_the_model_was_asked", len(pressed) - len(asked)),
        Result("stop_to_socket_closed_p50_ms", percentile(closed, 0.5)),
        Result("stop_to_socket_closed_p99_ms", percentile(closed, 0.99), 500),
        Result("stop_to_socket_closed_max_ms", max(closed)),
        Result("stops_missed", missed, 0),
        Result("stop_to_stopped_frame_p50_ms", percentile([one.reader_s * 1000 for one in pressed], 0.5)),
        Result("stop_to_stopped_frame_max_ms", max(one.reader_s for one in pressed) * 1000),
    ]


async def press_all(url: str, count: int, chance: random.Random) -> list[Stopped]:
    waits = asyncio.Semaphore(AT_ONCE)

    async def press(number: int, delay: float, trigger: str) -> Stopped:
        async with waits:
            turn, begun = Turn(f"{trigger}: where is the data kept? stop-{number}"), asyncio.Event()
            reading = asyncio.create_task(ask(url, turn, begun=begun))
            await asyncio.wait({reading, asyncio.create_task(begun.wait())}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            await asyncio.sleep(delay)
            pressed_at = time.monotonic()
            status = await stop(url, turn.turn_id)
            assert status == 204, (status, turn)
            await reading
            assert turn.end == "stopped", (turn.question, turn.end)
            return Stopped(turn.question.split()[-1], pressed_at, turn.frames[-1][0] - pressed_at)

    points = [(chance.uniform(0, 1.5), chance.choice(["e2e-slow", "e2e-slow", "e2e-silent"])) for _ in range(count)]
    return await asyncio.gather(*(press(number, *point) for number, point in enumerate(points)))


async def reconnects(url: str, turns: int, cuts: int, chance: random.Random) -> list[Result]:
    """Turns whose readers are cut off again and again: does what they read equal what is stored?"""

    async def one(number: int, after: list[int]) -> tuple[Turn, int]:
        turn = Turn(f"e2e-slow: where is the data kept? cut-{number}")
        body = {"message": turn.question, "client_key": turn.question}
        async with request(url, "POST", "/api/chat", body) as opened:
            acknowledge(turn, opened)
            await read(turn, opened, at_most=after[0])
        made = 1
        while turn.end is None:
            at_most = after[made] if made < len(after) else None
            path = f"/api/turns/{turn.turn_id}/events?after={turn.last_id}"
            async with request(url, "GET", path) as opened:
                await read(turn, opened, at_most=at_most)
            made += at_most is not None
        return turn, made

    points = [[chance.randint(1, 400) for _ in range(cuts)] for _ in range(turns)]
    for after in points:  # the first frame, with its sources, is longer than the others together
        after[0] = chance.randint(1, 20_000)
    done = await asyncio.gather(*(one(number, after) for number, after in enumerate(points)))
    differing = doubled = 0
    for turn, _ in done:
        messages = (await asyncio.to_thread(get, f"{url}/api/chats/{turn.chat_id}"))["messages"]
        differing += differing_bytes(turn.text, messages[-1]["content"])
        ids = [int(frame.id) for _, frame in turn.frames]
        doubled += ids != list(range(1, len(ids) + 1))
    return [
        Result("reconnected_turns", len(done)),
        Result("reconnects_fewest_in_a_turn", min(made for _, made in done)),
        Result("reconnects_bytes_differing", differing, 0),
        Result("reconnects_frames_missing_or_double", doubled, 0),
    ]


@dataclass
class Kill:
    """One life of the server: its turns as their readers saw them, and when it was killed."""

    turns: list[Turn]
    at: float = 0.0


def kills(data: Path, mock: str, settings: dict[str, str], count: int, chance: random.Random) -> list[Result]:
    """`kill -9` at any point, ten turns at a time: what was acknowledged, and how much of each answer is left?"""
    lives: list[Kill] = []
    for number in range(count):
        with ServerProcess(data, **settings) as server:
            lives.append(asyncio.run(one_life(server, number, chance)))
    with ServerProcess(data, **settings) as server:
        judged = [judge(server.url, life, journal_of(mock)) for life in lives]
        found = [one for some in judged for one in some]
    seconds = [one.lost_s for one in found if one.killed and one.has_text]
    return [
        Result("kills", len(lives)),
        Result("killed_turns", sum(one.killed for one in found)),
        Result("killed_turns_with_text", sum(one.killed and one.has_text for one in found)),
        Result("kill_questions_lost", sum(one.question_lost for one in found), 0),
        Result("kill_turns_in_a_wrong_state", sum(one.wrong_state for one in found), 0),
        Result("kill_answers_no_prefix", sum(one.no_prefix for one in found), 0),
        Result("kill_text_lost_p50_s", percentile(seconds, 0.5)),
        Result("kill_text_lost_max_s", max(seconds), 1),
    ]


async def one_life(server: ServerProcess, number: int, chance: random.Random) -> Kill:
    """Ten questions within two seconds, most of them answered slowly, and the end somewhere among them."""
    life = Kill([])
    kill_after = chance.uniform(0.3, 8)

    async def one(turn: Turn, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            await ask(server.url, turn)
        except OSError:
            return  # the connection broke before the head: not acknowledged

    for index in range(AT_ONCE):
        trigger = "e2e-slow: " if index % 5 else ""
        life.turns.append(Turn(f"{trigger}where is the data kept? kill-{number}-{index}"))
    reading = [asyncio.create_task(one(turn, chance.uniform(0, 2))) for turn in life.turns]
    await asyncio.sleep(kill_after)
    assert server.process is not None
    life.at = time.monotonic()
    server.process.kill()
    await asyncio.gather(*reading)
    server.process.wait()
    return life


@dataclass(frozen=True)
class Judged:
    """What became of one acknowledged turn."""

    killed: bool
    question_lost: bool
    wrong_state: bool
    no_prefix: bool
    lost_s: float
    has_text: bool


def judge(url: str, life: Kill, journal: Mapping[str, Journal]) -> list[Judged]:
    """Compares the rows with what the readers and the model noted."""
    found: list[Judged] = []
    for turn in life.turns:
        if not turn.turn_id:
            continue
        rows = get(f"{url}/api/chats/{turn.chat_id}")["messages"]
        asked = [row for row in rows if row["role"] == "user" and row["content"] == turn.question]
        answers = [row for row in rows if row["role"] == "assistant"]
        answer = answers[0] if answers else {"content": "", "status": "missing"}
        said = journal.get(turn.question.split()[-1], {}).get("said", [])
        unsaved = [at for at, chars in said if chars > len(answer["content"]) and at <= life.at]
        killed = turn.end is None
        states = {"interrupted", "complete"} if killed else {"complete"}  # it may have been done and not yet told
        shown = turn.text
        kept = answer["content"]
        found.append(
            Judged(
                killed=killed,
                question_lost=len(asked) != 1,
                wrong_state=answer["status"] not in states,
                no_prefix=not (shown.startswith(kept) or kept.startswith(shown)),
                lost_s=life.at - unsaved[0] if unsaved and killed else 0.0,
                has_text=bool(said) and said[0][0] <= life.at,
            )
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
