"""Turns over HTTP: stop one, watch one again.

Knowing a turn's id is no right to it: whose it is, is checked every time. For Stop the registry tells, because a stop
that waits for a database connection leaves the model at work just when the machine has too much of it; else SQL does.
"""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from app.api.stream import EventStream
from app.edge.deps import ServicesDep, UserDep
from app.edge.inputs import TurnId
from app.store import turns

router = APIRouter(prefix="/api/turns", tags=["turns"])

_EVENT_ID = re.compile("[0-9]{1,18}")


@router.post("/{turn_id}/stop", status_code=204)
async def stop_turn(turn_id: TurnId, services: ServicesDep, user_id: UserDep) -> Response:
    """Ends a turn, before its first token too; its text is kept. Again, or afterwards, it changes nothing."""
    scope = services.turns.get(turn_id)
    if scope is None or scope.owner != user_id:
        await services.database.aread(lambda session: turns.get_turn(session, user_id, turn_id))
    services.turns.stop(turn_id)
    return Response(status_code=204)


@router.get("/{turn_id}/events", status_code=200, response_class=EventStream, response_model=None)
async def watch_turn(
    turn_id: TurnId,
    services: ServicesDep,
    user_id: UserDep,
    after: Annotated[int, Query(ge=0)] = 0,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Frames with an id above `Last-Event-ID` (or `after`), then those to come. 204 once the turn can't be replayed any
    more: the page then reads the chat from the database."""
    turn = await services.database.aread(lambda session: turns.get_turn(session, user_id, turn_id))
    if services.turns.get(turn_id) is None:
        return Response(status_code=204)
    seen = int(last_event_id) if last_event_id and _EVENT_ID.fullmatch(last_event_id) else after
    headers = {"X-Turn-Id": turn.id, "X-Chat-Id": str(turn.chat_id or "")}
    return EventStream(lambda: services.turns.watch(turn_id, seen), headers=headers)
