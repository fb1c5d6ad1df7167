"""How turns end that nobody stopped: by a clock, with the server, by a kill, on a full disk."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.edge.auth import current_user
from app.edge.deps import Services
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID, User
from tests.asgi import Client, in_app, serving
from tests.integration.turn_life_kit import ANSWER, PARTS, answer_of, app_of, services_of, settled, turn_of
from tests.scripted import Gate, ScriptedModel


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
    gate, bob_id = Gate(), 2

    async def test(client: Client) -> None:
        bob = User(id=bob_id, username="bob", display_name="Bob", role="user", created_at=datetime.now(UTC))
        await services_of(client).database.awrite(lambda session: session.add(bob))
        client.app.dependency_overrides[current_user] = lambda: bob_id
        reply = await client.ask()
        client.app.dependency_overrides.clear()
        turn_id = reply.headers["x-turn-id"]
        await gate.reached()
        assert (await client.get(f"/api/turns/{turn_id}/events")).status == 404
        assert (await client.post(f"/api/turns/{turn_id}/stop")).status == 404
        assert (await client.get(f"/api/chats/{reply.headers['x-chat-id']}")).status == 404
        assert (await client.open("DELETE", f"/api/chats/{reply.headers['x-chat-id']}")).status == 404
        gate.open()
        assert (await reply.all_frames())[-1].event == "done"

    in_app(app_of(settings, ScriptedModel([gate, ANSWER])), test)
