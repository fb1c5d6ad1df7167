"""The life of a turn around its response: left, watched again, stopped, cut by a clock, ended by the server, killed."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.edge.deps import Services
from app.main import create_app
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.chats import Chat, Turn
from app.store.models.setup import LOCAL_USER_ID, User
from tests.asgi import Client, Reply, in_app, serving
from tests.scripted import Gate, ScriptedModel, ScriptedSearch, hit
from tests.sse import text_of

PARTS = ["Backups are made ", "every night at two [1]."]
ANSWER = "".join(PARTS)


def app_of(settings: Settings, model: ScriptedModel, search: ScriptedSearch | None = None) -> FastAPI:
    return create_app(settings, chat_for=model, searcher=search or ScriptedSearch(hit(1)))


def services_of(client: Client) -> Services:
    services: Services = client.app.state.docent
    return services


async def answer_of(client: Client, reply: Reply) -> chats.MessageRow:
    turn_id = reply.headers["x-turn-id"]
    found = await services_of(client).database.aread(lambda s: chats.answer_of(s, LOCAL_USER_ID, turn_id))
    assert found is not None
    return found


async def turn_of(client: Client, reply: Reply) -> turns.TurnRow:
    turn_id = reply.headers["x-turn-id"]
    return await services_of(client).database.aread(lambda s: turns.get_turn(s, LOCAL_USER_ID, turn_id))


async def settled(client: Client, reply: Reply) -> None:
    await services_of(client).turns.finished(reply.headers["x-turn-id"])


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


def test_the_total_clock_ends_a_turn_and_keeps_its_text(settings: Settings) -> None:
    """`llm_timeout`, with the limit in its sentence."""

    async def test(client: Client) -> None:
        reply = await client.ask()
        frames = await reply.all_frames()
        assert frames[-1].data["code"] == "llm_timeout"
        assert "LLM_TOTAL_S" in frames[-1].data["message"]
        answer = await answer_of(client, reply)
        assert (answer.content, answer.status, answer.error_code) == (PARTS[0], "error", "llm_timeout")

    short = settings.model_copy(update={"llm_total_s": 0.3})
    in_app(app_of(short, ScriptedModel([PARTS[0], Gate()])), test)


def test_a_grace_ends_a_turn_that_nobody_watches(settings: Settings) -> None:
    """Only where TURN_DETACH_GRACE_S is set: then it ends as a stop does."""

    async def test(client: Client) -> None:
        reply = await client.ask()
        await reply.until("delta")
        await reply.leave()
        await asyncio.wait_for(settled(client, reply), 10)
        assert (await answer_of(client, reply)).status == "stopped"

    grace = settings.model_copy(update={"turn_detach_grace_s": 0.05})
    in_app(app_of(grace, ScriptedModel([PARTS[0], Gate()])), test)


def test_the_end_of_the_server_interrupts_turns_and_ends_streams(settings: Settings) -> None:
    """Every watcher gets its terminal frame, every row its state, and new questions are refused meanwhile."""

    async def test(client: Client) -> None:
        replies = [await client.ask() for _ in range(20)]
        for reply in replies:
            await reply.until("delta")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await services_of(client).turns.shutdown()
        assert loop.time() - began < 4
        late = await client.ask()
        assert (late.status, (await late.json())["error"]["code"]) == (503, "shutting_down")
        for reply in replies:
            (last,) = await reply.all_frames()
            assert (last.event, last.data["code"], last.data["retryable"]) == ("error", "interrupted", True)
            answer = await answer_of(client, reply)
            assert (answer.content, answer.status) == (PARTS[0], "interrupted")
            assert (await turn_of(client, reply)).state == "interrupted"

    in_app(app_of(settings, ScriptedModel([PARTS[0], Gate()])), test)


def test_a_kill_loses_at_most_what_was_not_yet_written(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """The next start finds the text of the last beat, the sources and the prompt, and logs the turn's line."""
    ids: list[str] = []

    async def before(client: Client) -> None:
        reply = await client.ask()
        await reply.until("delta")
        services = services_of(client)
        await services.drafts.write()
        ids.append(reply.headers["x-turn-id"])
        # What a kill leaves: the database as it was in the midst of the turn.
        await asyncio.to_thread(copy_database, services.database.path, settings.data_dir.parent / "killed")

    in_app(app_of(settings, ScriptedModel([PARTS[0], Gate()])), before)
    killed = settings.model_copy(update={"data_dir": settings.data_dir.parent / "killed"})

    async def after(client: Client) -> None:
        database = services_of(client).database
        turn = await database.aread(lambda s: turns.get_turn(s, LOCAL_USER_ID, ids[0]))
        answer = await database.aread(lambda s: chats.answer_of(s, LOCAL_USER_ID, ids[0]))
        assert answer is not None
        assert (turn.state, answer.status, answer.content) == ("interrupted", "interrupted", PARTS[0])
        assert answer.sources[0]["path"] == "manual-1.md"
        assert turn.prompt is not None
        assert turn.numbers is not None
        assert (turn.numbers["chunks"], turn.numbers["searched"]) == (1, "How often are backups made?")
        follow_up = await client.ask(chat_id=turn.chat_id, client_key="after the start")
        assert (await follow_up.all_frames())[-1].event == "done"

    with caplog.at_level(logging.INFO, "app.chat"):
        caplog.clear()
        in_app(app_of(killed, ScriptedModel([ANSWER])), after)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("chat_turn")]
    assert f"turn={ids[0]} " in lines[0]
    assert "outcome=interrupted" in lines[0]
    assert lines[0].endswith("total_ms=- retries=- scaffold_stripped=-")
    assert len(lines) == 2


def copy_database(source: Path, folder: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(folder / source.name)) as copy:
        original.backup(copy)


class FullDisk(Database):
    """A database whose disk is full while `full` is set."""

    full = False

    async def awrite(self, work: Any) -> Any:
        if self.full:
            raise OperationalError("UPDATE", {}, Exception("database or disk is full"))
        return await super().awrite(work)


def test_an_end_that_can_not_be_stored_is_told_and_does_not_lock_the_chat(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader hears `internal` and never `done`; once there is room again, the chat goes on."""
    gate = Gate()
    app = app_of(settings, ScriptedModel([PARTS[0], gate], [ANSWER]))
    services: Services = app.state.docent
    disk = FullDisk(settings.database)

    async def test() -> None:
        app.state.docent = replace(services, database=disk)
        async with serving(app) as client:
            reply = await client.ask()
            await gate.reached()
            disk.full = True
            gate.open()
            frames = await reply.all_frames()
            assert [frame.data.get("code") for frame in frames[-1:]] == ["internal"]
            disk.full = False
            chat_id = int(reply.headers["x-chat-id"])
            assert (await client.get(f"/api/chats/{chat_id}/active")).status == 204
            assert (await (await client.ask(chat_id=chat_id)).all_frames())[-1].event == "done"
            assert (await turn_of(client, reply)).state == "interrupted"

    asyncio.run(asyncio.wait_for(test(), 60))
    disk.close()
    assert "turn_not_settled" in caplog.text


def test_another_users_turn_can_be_neither_watched_nor_stopped(settings: Settings) -> None:
    """404 for both, and the turn runs on."""
    gate = Gate()

    async def test(client: Client) -> None:
        database = services_of(client).database
        bob = User(id=2, username="bob", display_name="Bob", role="user", created_at=datetime.now(UTC))
        await database.awrite(lambda session: session.add(bob))
        reply = await client.ask()
        turn_id = reply.headers["x-turn-id"]
        await gate.reached()

        def give_away(session: Any) -> None:
            session.scalars(select(Turn)).one().user_id = 2
            session.scalars(select(Chat)).one().user_id = 2

        await database.awrite(give_away)
        assert (await client.get(f"/api/turns/{turn_id}/events")).status == 404
        assert (await client.post(f"/api/turns/{turn_id}/stop")).status == 404
        assert (await client.get(f"/api/chats/{reply.headers['x-chat-id']}")).status == 404
        assert (await client.open("DELETE", f"/api/chats/{reply.headers['x-chat-id']}")).status == 404
        gate.open()
        assert (await reply.all_frames())[-1].event == "done"

    in_app(app_of(settings, ScriptedModel([gate, ANSWER])), test)
