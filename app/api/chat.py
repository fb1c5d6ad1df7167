"""`POST /api/chat`: takes a question, starts its turn, and watches it.

Owns what a question has to look like and which refusal it gets; nothing is stored before that. The turn itself is
`app.api.run_turn`, run by `app.turns`; this response only watches, so closing the tab ends nothing.
"""

import secrets
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from app.api.frames import TurnIds
from app.api.run_turn import TurnRun
from app.api.stream import EventStream
from app.api.turn_start import TurnRequest
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import InputText, RowId
from app.errors import ConflictError, InvalidInputError
from app.search.hits import SearchFilters
from app.store import chats, turns
from app.store.engine import Session
from app.store.turns import BegunTurn, ChatBusyError, NewTurn
from app.turns.registry import ShuttingDownError

router = APIRouter(prefix="/api", tags=["chat"])

IdList = Annotated[list[RowId], Field(max_length=1000)]


class ChatBody(BaseModel):
    """A question. Without `chat_id` it begins a chat; `collections` stay with the chat, `documents` hold for this turn.

    `client_key` names the question for this client: sent twice, it is one turn.
    """

    model_config = ConfigDict(extra="forbid")

    chat_id: RowId | None = None
    message: InputText
    client_key: Annotated[InputText, Field(min_length=1, max_length=100)]
    collections: IdList | None = None
    documents: IdList | None = None
    without_documents: bool = False


@router.post("/chat", status_code=200, response_class=EventStream, response_model=None)
async def post_chat(body: ChatBody, services: ServicesDep, user_id: UserDep) -> Response:
    """Starts a turn and streams its frames (docs/sse.md); a client key that was used replays its turn from id 1.

    Refusals are plain JSON: 404 `chat_not_found`, 409 `chat_busy` and `turn_gone` (both with `turn_id`), 422
    `question_empty` and `question_too_long`.
    """
    question = _question(body.message, services)
    new = NewTurn(
        turn_id=secrets.token_hex(8),
        user_id=user_id,
        chat_id=body.chat_id,
        client_key=body.client_key,
        question=question,
        now=services.clock.now(),
        collections=None if body.collections is None else tuple(body.collections),
    )
    if services.turns.closing:
        raise ShuttingDownError
    begun, collections = await _begin(services, new)
    if begun.is_new:
        filters = SearchFilters(collections, None if body.documents is None else tuple(body.documents))
        _start(services, new, begun, filters, body.without_documents)
    elif services.turns.get(begun.turn_id) is None:
        raise ConflictError("turn_gone", params={"turn_id": begun.turn_id})
    headers = {"X-Turn-Id": begun.turn_id, "X-Chat-Id": str(begun.chat_id)}
    return EventStream(lambda: services.turns.watch(begun.turn_id), headers=headers)


def _question(message: str, services: Services) -> str:
    question = message.strip()
    limit = services.settings.question_max_chars
    if not question:
        raise InvalidInputError("question_empty")
    if len(question) > limit:
        params = {"chars": len(question), "limit": limit}
        raise InvalidInputError("question_too_long", setting="QUESTION_MAX_CHARS", params=params)
    return question


async def _begin(services: Services, new: NewTurn) -> tuple[BegunTurn, tuple[int, ...] | None]:
    """Stores the question; gives the turn and the collections it goes to (None: all)."""

    def work(session: Session) -> tuple[BegunTurn, tuple[int, ...] | None]:
        begun = turns.begin_turn(session, new)
        return begun, chats.get_chat(session, new.user_id, begun.chat_id).collection_filter

    try:
        return await services.database.awrite(work)
    except ChatBusyError as error:
        busy = services.turns.get(error.turn_id)
        if busy is not None and not busy.log.closed:
            raise
        orphan = error.turn_id
    # Its end could not be stored when it came (a full disk), so that the row still says `running`.
    await services.database.awrite(lambda session: turns.interrupt_turn(session, orphan, new.now))
    return await services.database.awrite(work)


def _start(services: Services, new: NewTurn, begun: BegunTurn, filters: SearchFilters, without_documents: bool) -> None:
    """Hands the turn to the registry. No await between storing and this: a second POST with the key must find it."""
    ids = TurnIds(begun.turn_id, begun.chat_id, begun.user_message_id, begun.message_id)
    request = TurnRequest(ids, new.user_id, new.question, filters, without_documents)
    total_s = services.settings.llm_total_s
    services.turns.start(begun.turn_id, TurnRun(services, request), owner=new.user_id, total_s=total_s)
