"""One question to an application whose model and library are scripted, and what it left behind."""

import re
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from tests.asgi import Client, in_app
from tests.scripted import ScriptedModel, ScriptedSearch, Step, hit
from tests.sse import Frame

ANSWER = "Backups are made every night at two [1]. They are kept for thirty days [1]."


def app_of(settings: Settings, model: ScriptedModel, search: ScriptedSearch | None = None) -> FastAPI:
    return create_app(settings, chat_for=model, searcher=search or ScriptedSearch(hit(1), hit(2, score=0.5)))


def ask(
    settings: Settings, *script: Step, search: ScriptedSearch | None = None, message: str = "How often?", **more: Any
) -> tuple[list[Frame], FastAPI]:
    """One question; its frames, and the application (closed) for its rows."""
    frames: list[Frame] = []
    app = app_of(settings, ScriptedModel(script), search)

    async def test(client: Client) -> None:
        reply = await client.ask(message, **more)
        assert reply.status == 200
        frames.extend(await reply.all_frames())

    in_app(app, test)
    return frames, app


def rows(settings: Settings, kind: type[Any]) -> list[Any]:
    database = Database(settings.database)
    try:
        return database.read(lambda session: list(session.scalars(select(kind).order_by(kind.id))))
    finally:
        database.close()


def turn_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The per-turn lines so far; the caller lets INFO through."""
    said = [record.getMessage() for record in caplog.records]
    return [line for line in said if line.startswith("chat_turn ")]


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", line))
