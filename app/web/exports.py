"""Saving a chat or one answer as a Markdown file: `/chats/{id}/export.md` and `/turns/{id}/export.md`.

Owns the routes, and which messages go in; the text is `app.web.export_markdown`'s. Plain links: no script is needed.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import problem_message
from app.edge.inputs import RowId, TurnId
from app.errors import NotFoundError
from app.store import chats, turns
from app.store.chats import MessageRow
from app.store.engine import Session
from app.store.turns import TurnRow
from app.web.export_markdown import Exchange, as_markdown, file_name

router = APIRouter()


@router.get("/chats/{chat_id}/export.md", response_class=Response)
def export_chat(request: Request, chat_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """The whole chat: questions as headings, answers with footnotes.

    Raises:
        NotFoundError: `chat_not_found`.
    """

    def read(session: Session) -> tuple[str, list[Exchange]]:
        chat = chats.get_chat(session, user_id, chat_id)
        messages = chats.list_messages(session, user_id, chat_id)
        rows = {row.id: row for row in turns.list_turns(session, user_id, chat_id)}
        return chat.title, _exchanges(services, messages, rows)

    title, exchanges = services.database.read(read)
    return _file(as_markdown(services.catalog, title, exchanges, _origin(request)), title)


@router.get("/turns/{turn_id}/export.md", response_class=Response)
def export_answer(request: Request, turn_id: TurnId, services: ServicesDep, user_id: UserDep) -> Response:
    """One question and its answer.

    Raises:
        NotFoundError: `turn_not_found`.
    """

    def read(session: Session) -> list[Exchange]:
        row = turns.get_turn(session, user_id, turn_id)
        answer = chats.answer_of(session, user_id, turn_id)
        if answer is None or answer.parent_id is None:
            raise NotFoundError("turn_not_found")
        return _exchanges(services, [chats.get_message(session, user_id, answer.parent_id), answer], {row.id: row})

    exchanges = services.database.read(read)
    return _file(as_markdown(services.catalog, "", exchanges, _origin(request)), chats.title_of(exchanges[0].question))


def _exchanges(services: Services, messages: Sequence[MessageRow], rows: Mapping[str, TurnRow]) -> list[Exchange]:
    questions = {message.turn_id: message for message in messages if message.role == "user"}
    return [
        Exchange(
            turn_id=message.turn_id,
            question=questions[message.turn_id].content,
            answer=message.content,
            sources=() if rows[message.turn_id].mode == "deflected" else message.sources,
            remark=_remark(services, message, rows[message.turn_id]),
        )
        for message in messages
        if message.role == "assistant" and message.turn_id in questions and message.turn_id in rows
    ]


def _remark(services: Services, answer: MessageRow, row: TurnRow) -> str:
    """What the page says of an answer that did not end well."""
    catalog, numbers = services.catalog, row.numbers or {}
    match answer.status:
        case "stopped":
            return catalog.t("chat.stopped" if answer.content else "chat.stopped_early")
        case "error" | "interrupted":
            return problem_message(catalog, numbers.get("problem") or {"code": answer.error_code})
        case "streaming":
            return catalog.t("chat.export_running")
        case _:
            return catalog.t("notices.answer_cut") if numbers.get("finish_reason") == "length" else ""


def _origin(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _file(text: str, title: str) -> Response:
    """A download; its name in the two ways that browsers understand (RFC 6266)."""
    name = file_name(title)
    plain = "".join(character if character.isascii() else "_" for character in name)
    return Response(
        text.encode("utf-8", "replace"),
        media_type="text/markdown; charset=utf-8",
        headers={"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"},
    )
