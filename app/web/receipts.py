"""The receipt of a turn, `/turns/{id}`: what was asked, found, given, sent and counted, to read and to report.

Owns the route and what it reads; what is shown of it is `app.web.receipt_view`'s.
"""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.edge.deps import ServicesDep, UserDep
from app.errors import NotFoundError
from app.store import chats, turns
from app.store.chats import ChatRow, MessageRow
from app.store.engine import Session
from app.store.turns import TurnRow
from app.web import receipt_view
from app.web.templating import render_page

router = APIRouter()


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn with its chat, question and answer; those are None for a turn without a chat."""

    turn: TurnRow
    chat: ChatRow | None
    question: MessageRow | None
    answer: MessageRow | None


@router.get("/turns/{turn_id}", response_class=HTMLResponse)
def receipt_page(request: Request, turn_id: str, services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The receipt page.

    Raises:
        NotFoundError: `turn_not_found`, also for another user's turn.
    """
    record = services.database.read(lambda session: read_turn(session, user_id, turn_id))
    catalog = services.catalog
    receipt = receipt_view.build(
        record.turn,
        record.question,
        record.answer,
        threshold=services.settings.retrieval_min_score,
        when=_moment(record.turn, services),
        catalog=catalog,
    )
    title = f"{catalog.t('receipt.title')}: {record.chat.title}" if record.chat else catalog.t("receipt.title")
    return render_page(
        services,
        request,
        user_id,
        "receipt/page.html",
        place="chat",
        chat_id=record.chat.id if record.chat else None,
        chat=record.chat,
        receipt=receipt,
        as_text=receipt_view.as_text(receipt, title),
    )


def read_turn(session: Session, user_id: int, turn_id: str) -> TurnRecord:
    """A turn of the user's and what belongs to it.

    Raises:
        NotFoundError: `turn_not_found`.
    """
    turn = turns.get_turn(session, user_id, turn_id)
    if turn.chat_id is None:
        return TurnRecord(turn, None, None, None)
    try:
        chat = chats.get_chat(session, user_id, turn.chat_id)
    except NotFoundError:
        return TurnRecord(turn, None, None, None)
    answer = chats.answer_of(session, user_id, turn_id)
    question = None
    if answer and answer.parent_id is not None:
        question = chats.get_message(session, user_id, answer.parent_id)
    return TurnRecord(turn, chat, question, answer)


def _moment(turn: TurnRow, services: ServicesDep) -> str:
    """The start as words: "14:02" today, "18 Nov, 14:02" before."""
    catalog, now = services.catalog, services.clock.now()
    day, time = catalog.when(turn.started_at, now), catalog.time_of_day(turn.started_at)
    return time if day == time else f"{day}, {time}"
