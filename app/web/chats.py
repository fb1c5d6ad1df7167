"""Fragments of chats for htmx and the stream's script: the list, rename, delete, one turn.

Every change also works without script: the form posts and the answer leads back to a page.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.errors import NotFoundError
from app.store import chats, turns
from app.store.engine import Session
from app.turns import marking
from app.web.chat_view import TurnView, turn_view
from app.web.side import side_bar
from app.web.templating import render_fragment

router = APIRouter()

_LARGEST_ID = 2**63 - 1
RowId = Annotated[int, Path(ge=1, le=_LARGEST_ID)]


@router.get("/ui/chats", response_class=HTMLResponse)
def chat_list(
    services: ServicesDep, user_id: UserDep, current: Annotated[int | None, Query(ge=1, le=_LARGEST_ID)] = None
) -> HTMLResponse:
    """The chats by day; `current` is the open one."""
    side = services.database.read(lambda session: side_bar(session, services.settings, user_id))
    return render_fragment(services, "_partials/chat_list.html", side=side, chat_id=current)


@router.get("/ui/chats/{chat_id}/row", response_class=HTMLResponse)
def chat_row(request: Request, services: ServicesDep, user_id: UserDep, chat_id: RowId) -> HTMLResponse:
    """One row of the list: what "Cancel" brings back."""
    return _row(request, services, user_id, chat_id)


@router.get("/ui/chats/{chat_id}/rename", response_class=HTMLResponse)
def rename_form(services: ServicesDep, user_id: UserDep, chat_id: RowId) -> HTMLResponse:
    """The row as a form."""
    chat = services.database.read(lambda session: chats.get_chat(session, user_id, chat_id))
    return render_fragment(services, "chat/_rename.html", chat=chat)


@router.post("/ui/chats/{chat_id}/rename")
def rename(
    request: Request, services: ServicesDep, user_id: UserDep, chat_id: RowId, title: Annotated[str, Form()] = ""
) -> Response:
    """Renames; an empty or long title is refused with its sentence."""
    services.database.write(lambda session: chats.rename_chat(session, user_id, chat_id, title))
    if "HX-Request" not in request.headers:
        return RedirectResponse(f"/chats/{chat_id}", 303)
    return _row(request, services, user_id, chat_id, "chat/_renamed.html")


@router.get("/ui/chats/{chat_id}/delete", response_class=HTMLResponse)
def delete_dialog(services: ServicesDep, user_id: UserDep, chat_id: RowId) -> HTMLResponse:
    """The confirming dialog."""
    chat = services.database.read(lambda session: chats.get_chat(session, user_id, chat_id))
    return render_fragment(services, "chat/_delete.html", chat=chat)


@router.post("/ui/chats/{chat_id}/delete")
async def delete(request: Request, services: ServicesDep, user_id: UserDep, chat_id: RowId) -> Response:
    """Stops what runs in the chat, removes it, and leads to a new one if it was open."""
    database = services.database
    running = await database.aread(lambda session: turns.running_turn(session, user_id, chat_id))
    if running is not None:
        services.turns.stop(running)
        await services.turns.finished(running)
    await database.awrite(lambda session: chats.delete_chat(session, user_id, chat_id))
    if "HX-Request" not in request.headers:
        return RedirectResponse("/", 303)
    current = _current(request)
    if current == chat_id:
        return Response(headers={"HX-Redirect": "/"})
    side = await database.aread(lambda session: side_bar(session, services.settings, user_id))
    return render_fragment(services, "_partials/chat_list.html", side=side, chat_id=current)


@router.get("/ui/turns/{turn_id}", response_class=HTMLResponse)
def turn_fragment(services: ServicesDep, user_id: UserDep, turn_id: str) -> HTMLResponse:
    """One settled or running turn, as the page shows it."""
    _, turn = services.database.read(lambda session: read_turn(session, services, user_id, turn_id))
    return render_fragment(services, "chat/_turn.html", turn=turn)


def read_turn(session: Session, services: Services, user_id: int, turn_id: str) -> tuple[int, TurnView]:
    """A turn as the page shows it, and its chat.

    Raises:
        NotFoundError: `turn_not_found`.
    """
    row = turns.get_turn(session, user_id, turn_id)
    answer = chats.answer_of(session, user_id, turn_id)
    if answer is None or answer.parent_id is None:
        raise NotFoundError("turn_not_found")
    question = chats.get_message(session, user_id, answer.parent_id)
    said = marking.said_of(session, user_id, {turn_id: answer})[turn_id]
    return answer.chat_id, turn_view(services.catalog, question, answer, row, said)


def _row(
    request: Request, services: Services, user_id: int, chat_id: int, template: str = "_partials/chat_row.html"
) -> HTMLResponse:
    chat = services.database.read(lambda session: chats.get_chat(session, user_id, chat_id))
    return render_fragment(services, template, chat=chat, chat_id=_current(request))


def _current(request: Request) -> int | None:
    """The chat whose page sent the request."""
    _, _, number = request.headers.get("HX-Current-URL", "").rpartition("/chats/")
    number = number.partition("?")[0].partition("#")[0]
    return int(number) if number.isdecimal() and len(number) < 19 else None
