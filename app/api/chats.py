"""Chats over HTTP: list, read, rename, delete; and the questions that the documents did not answer."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import InputText, RowId
from app.store import chats, queries, turns
from app.store.engine import Session

router = APIRouter(prefix="/api", tags=["chats"])

PAGE = 100


class RenameBody(BaseModel):
    """A chat's new title."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[InputText, Field(max_length=10_000)]


@router.get("/chats")
def list_chats(
    services: ServicesDep,
    user_id: UserDep,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> dict[str, Any]:
    """`{chats: [row…], next}`, the one asked in last first; `next` is the offset of the next page, or null."""
    rows = services.database.read(lambda session: chats.list_chats(session, user_id, limit=limit + 1, offset=offset))
    return {"chats": [asdict(row) for row in rows[:limit]], "next": offset + limit if len(rows) > limit else None}


@router.get("/chats/{chat_id}")
def read_chat(chat_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{chat, messages, turn_id}`; `turn_id` is the running turn's, or null."""

    def read(session: Session) -> dict[str, Any]:
        return {
            "chat": asdict(chats.get_chat(session, user_id, chat_id)),
            "messages": [asdict(message) for message in chats.list_messages(session, user_id, chat_id)],
            "turn_id": turns.running_turn(session, user_id, chat_id),
        }

    return services.database.read(read)


@router.patch("/chats/{chat_id}")
def rename_chat(chat_id: RowId, body: RenameBody, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Gives a chat another title; returns its row."""
    return asdict(services.database.write(lambda session: chats.rename_chat(session, user_id, chat_id, body.title)))


@router.delete("/chats/{chat_id}", status_code=204)
async def delete_chat(chat_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Removes a chat with everything in it; an answer that is being written is stopped first."""
    await remove_chat(services, user_id, chat_id)
    return Response(status_code=204)


async def remove_chat(services: Services, user_id: int, chat_id: int) -> None:
    """As the route does. A question that comes in between goes with the chat, and its turn is stopped as well."""

    def remove(session: Session) -> str | None:
        late = turns.running_turn(session, user_id, chat_id)
        chats.delete_chat(session, user_id, chat_id)
        return late

    running = await services.database.aread(lambda session: turns.running_turn(session, user_id, chat_id))
    await _end(services, running)
    await _end(services, await services.database.awrite(remove))


async def _end(services: Services, turn_id: str | None) -> None:
    if turn_id is not None:
        services.turns.stop(turn_id)
        await services.turns.finished(turn_id)


@router.get("/chats/{chat_id}/active", response_model=None)
async def active_turn(chat_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, str] | Response:
    """`{turn_id}` of the turn that runs in the chat, or 204."""

    def read(session: Session) -> str | None:
        chats.get_chat(session, user_id, chat_id)
        return turns.running_turn(session, user_id, chat_id)

    running = await services.database.aread(read)
    scope = None if running is None else services.turns.get(running)
    if running is None or scope is None or scope.log.closed:
        return Response(status_code=204)
    return {"turn_id": running}


@router.get("/queries")
def list_queries(
    services: ServicesDep, user_id: UserDep, limit: Annotated[int, Query(ge=1, le=1000)] = PAGE
) -> dict[str, Any]:
    """`{queries: [row…]}`: questions that the documents did not answer, newest first."""
    rows = services.database.read(lambda session: queries.list_gaps(session, user_id, limit=limit))
    return {"queries": [asdict(row) for row in rows]}
