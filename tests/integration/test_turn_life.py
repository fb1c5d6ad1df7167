"""The life of a turn around its response: left, watched again, stopped."""

import asyncio
import logging
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.clock import SystemClock
from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from tests.asgi import Client, in_app
from tests.integration.turn_life_kit import ANSWER, PARTS, answer_of, app_of, services_of, turn_of
from tests.scripted import Gate, ScriptedModel, ScriptedSearch, hit
from tests.sse import text_of


def test_closing_the_tab_ends_nothing(settings: Settings) -> None:
    """The turn goes on without a reader; who comes back sees all of it, then the rest as it comes."""
    first, second = Gate(), Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        await reply.until("delta")
        await reply.leave()
        again = await client.get(f"/api/turns/{reply.headers['x-turn-id']}/events")
        seen = await again.until("delta")
        assert text_of(seen) == PARTS[0]
        first.open()
        rest = await again.all_frames()
        assert text_of(rest) == PARTS[1]
        assert rest[-1].event == "done"
        assert [int(frame.id) for frame in seen + rest] == list(range(1, len(seen + rest) + 1))
        assert (await answer_of(client, reply)).content == ANSWER

    in_app(app_of(settings, ScriptedModel([PARTS[0], first, PARTS[1]], [second])), test)


@pytest.mark.parametrize("by_header", [True, False])
def test_a_replay_begins_after_the_last_id(settings: Settings, by_header: bool) -> None:
    """Nothing comes twice: by the header a browser sends, or by the parameter."""

    async def test(client: Client) -> None:
        reply = await client.ask()
        whole = await reply.all_frames()
        path = f"/api/turns/{reply.headers['x-turn-id']}/events"
        for seen in range(len(whole) + 1):
            again = await (
                client.get(path, headers={"last-event-id": str(seen)})
                if by_header
                else client.get(f"{path}?after={seen}")
            )
            assert again.headers["x-chat-stream"] == "v1"
            assert await again.all_frames() == whole[seen:]

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)


def test_a_strange_last_id_replays_everything(settings: Settings) -> None:
    """What is no number can't be a position."""

    async def test(client: Client) -> None:
        reply = await client.ask()
        whole = await reply.all_frames()
        for strange in ("", "x", "-1", "²", "1; drop"):
            path = f"/api/turns/{reply.headers['x-turn-id']}/events"
            assert await (await client.get(path, headers={"last-event-id": strange})).all_frames() == whole
        assert (await client.get(f"/api/turns/{reply.headers['x-turn-id']}/events?after=-1")).status == 422

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)


def test_a_turn_that_can_not_be_replayed_sends_the_page_to_the_database(settings: Settings) -> None:
    """204 after a restart; an unknown turn is 404."""
    ids: list[str] = []

    async def before(client: Client) -> None:
        reply = await client.ask()
        await reply.all_frames()
        ids.append(reply.headers["x-turn-id"])

    async def after(client: Client) -> None:
        assert (await client.get(f"/api/turns/{ids[0]}/events")).status == 204
        assert (await client.get("/api/turns/unknown/events")).status == 404
        assert (await client.post("/api/turns/unknown/stop")).status == 404

    in_app(app_of(settings, ScriptedModel([ANSWER])), before)
    in_app(app_of(settings, ScriptedModel([ANSWER])), after)


def test_stop_keeps_the_text_and_closes_the_model(settings: Settings) -> None:
    """From another connection, twice, and again when it is over: 204 each time, one `stopped` frame."""
    gate, model = Gate(), ScriptedModel([PARTS[0], Gate()])
    model.scripts = [[PARTS[0], gate]]

    async def test(client: Client) -> None:
        reply = await client.ask()
        seen = await reply.until("delta")
        stop = f"/api/turns/{reply.headers['x-turn-id']}/stop"
        replies = await asyncio.gather(client.post(stop), client.post(stop))
        assert [stopped.status for stopped in replies] == [204, 204]
        rest = await reply.all_frames()
        assert [frame.event for frame in rest] == ["stopped"]
        answer = await answer_of(client, reply)
        assert rest[0].data == {"message_id": answer.id, "answer_chars": len(PARTS[0])}
        assert (answer.content, answer.status, answer.error_code) == (PARTS[0], "stopped", None)
        assert answer.content == text_of(seen)
        turn = await turn_of(client, reply)
        assert (turn.state, turn.outcome) == ("stopped", "stopped")
        assert model.closed == 1
        assert (await client.post(stop)).status == 204
        assert (await (await client.get("/api/queries")).json()) == {"queries": []}

    in_app(app_of(settings, model), test)


def test_stop_works_before_the_first_token(settings: Settings) -> None:
    """While the model is silent, and before it was even asked."""
    gate = Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        await gate.reached()
        assert (await client.post(f"/api/turns/{reply.headers['x-turn-id']}/stop")).status == 204
        frames = await reply.all_frames()
        assert [frame.event for frame in frames] == ["start", "stopped"]
        at_once = await client.ask()
        services_of(client).turns.stop(at_once.headers["x-turn-id"])
        assert (await at_once.all_frames())[-1].event == "stopped"
        assert (await turn_of(client, at_once)).state == "stopped"

    in_app(app_of(settings, ScriptedModel([gate])), test)


def test_a_stopped_chat_takes_the_next_question(settings: Settings) -> None:
    """Nothing of the stopped turn is in its way."""

    async def test(client: Client) -> None:
        reply = await client.ask()
        await reply.until("start")
        await client.post(f"/api/turns/{reply.headers['x-turn-id']}/stop")
        await reply.all_frames()
        chat_id = int(reply.headers["x-chat-id"])
        assert (await (await client.ask(chat_id=chat_id)).all_frames())[-1].event == "done"

    in_app(app_of(settings, ScriptedModel([Gate()], [ANSWER])), test)


def test_a_running_turn_can_be_found_from_its_chat(settings: Settings) -> None:
    """What a page asks after a reload: the turn while it runs, 204 afterwards."""
    gate = Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        active = f"/api/chats/{reply.headers['x-chat-id']}/active"
        assert await (await client.get(active)).json() == {"turn_id": reply.headers["x-turn-id"]}
        gate.open()
        await reply.all_frames()
        assert (await client.get(active)).status == 204

    in_app(app_of(settings, ScriptedModel([gate, ANSWER])), test)


class BusyDatabase(Database):
    """A database all of whose readers are taken while `taken` is set."""

    taken = False

    async def aread(self, work: Any) -> Any:
        if self.taken:
            await asyncio.Event().wait()
        return await super().aread(work)


def test_stop_waits_for_no_database(settings: Settings) -> None:
    """A stop that waits its turn leaves the model at work just when the machine has too much of it."""
    gate = Gate()
    model = ScriptedModel([PARTS[0], gate])
    app = app_of(settings, model)
    busy = BusyDatabase(settings.database)
    app.state.docent = replace(app.state.docent, database=busy)

    async def test(client: Client) -> None:
        reply = await client.ask()
        await gate.reached()
        busy.taken = True
        assert (await client.post(f"/api/turns/{reply.headers['x-turn-id']}/stop")).status == 204
        assert (await reply.all_frames())[-1].event == "stopped"
        assert model.closed == 1

    in_app(app, test)
    busy.close()


class JumpingClock(SystemClock):
    """A clock whose wall time is set to another day while it runs."""

    by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.by


@pytest.mark.parametrize("by", [timedelta(days=-1), timedelta(days=365)])
def test_a_wall_clock_that_jumps_in_mid_turn_changes_no_duration_and_no_order(
    settings: Settings, caplog: pytest.LogCaptureFixture, by: timedelta
) -> None:
    """The turn is neither timed out nor negative; questions stay in the order they were asked in."""
    clock, gate = JumpingClock(), Gate()
    model = ScriptedModel([PARTS[0], gate, PARTS[1]], [ANSWER])
    app = create_app(settings, clock=clock, chat_for=model, searcher=ScriptedSearch(hit(1)))

    async def test(client: Client) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = await client.ask("First?")
        await reply.until("delta")
        clock.by = by
        gate.open()
        (*_, done) = await reply.all_frames()
        assert done.event == "done"
        assert 0 < done.data["total_ms"] <= (loop.time() - began) * 1000 + 1
        chat_id = int(reply.headers["x-chat-id"])
        assert (await (await client.ask("Second?", chat_id=chat_id)).all_frames())[-1].event == "done"
        messages = (await (await client.get(f"/api/chats/{chat_id}")).json())["messages"]
        assert [message["content"] for message in messages] == ["First?", ANSWER, "Second?", ANSWER]

    with caplog.at_level(logging.INFO, "app.chat"):
        in_app(app, test)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("chat_turn ")]
    assert [int(ms) < 60_000 for line in lines for ms in re.findall(r"_ms=(-?\d+)", line)] == [True] * 6
    assert "_ms=-" not in " ".join(lines)
