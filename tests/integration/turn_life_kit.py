"""A turn whose model speaks in parts, and its rows while it runs."""

from fastapi import FastAPI

from app.edge.deps import Services
from app.main import create_app
from app.settings import Settings
from app.store import chats, turns
from app.store.models.setup import LOCAL_USER_ID
from tests.asgi import Client, Reply
from tests.scripted import ScriptedModel, ScriptedSearch, hit

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
