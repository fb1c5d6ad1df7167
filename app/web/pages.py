"""The chat pages: a new chat, the first run, one chat.

Owns what they need from the database. Turns are asked and streamed through `/api`; fragments are `app.web.chats`'.
"""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.edge.deps import Services, ServicesDep, UserDep
from app.store import chats, collections, turns
from app.store.engine import Session
from app.turns import marking
from app.web.chat_view import turn_views
from app.web.chats import RowId
from app.web.templating import render_page

router = APIRouter()


@router.get("/", response_class=HTMLResponse)
def new_chat(request: Request, services: ServicesDep, user_id: UserDep, q: str = "") -> HTMLResponse:
    """An empty chat, or the first-run page while there is nothing to read; `q` fills the composer in."""
    scopes = services.database.read(lambda session: collections.list_collections(session, user_id))
    first_run = not any(scope.documents for scope in scopes)
    return render_page(
        services,
        request,
        user_id,
        "chat/first_run.html" if first_run else "chat/new.html",
        place="chat",
        draft=q,
        **_composer(services, scopes, None),
    )


@router.get("/chats/{chat_id}", response_class=HTMLResponse)
def chat_page(request: Request, services: ServicesDep, user_id: UserDep, chat_id: RowId) -> HTMLResponse:
    """One chat with all its turns; a running one is followed by the script."""

    def read(session: Session) -> tuple[Any, ...]:
        chat = chats.get_chat(session, user_id, chat_id)
        messages = chats.list_messages(session, user_id, chat_id)
        answers = {message.turn_id: message for message in messages if message.role == "assistant"}
        return (
            chat,
            messages,
            turns.list_turns(session, user_id, chat_id),
            collections.list_collections(session, user_id),
            marking.said_of(session, user_id, answers),
        )

    chat, messages, rows, scopes, said = services.database.read(read)
    return render_page(
        services,
        request,
        user_id,
        "chat/page.html",
        place="chat",
        chat=chat,
        chat_id=chat.id,
        draft="",
        turns=turn_views(services.catalog, messages, rows, said),
        **_composer(services, scopes, chat.collection_filter),
    )


def _composer(
    services: Services, scopes: list[collections.CollectionRow], chosen: tuple[int, ...] | None
) -> dict[str, Any]:
    return {
        "scopes": scopes,
        "scope": chosen[0] if chosen and len(chosen) == 1 else None,
        "documents": sum(scope.documents for scope in scopes),
        "question_max": services.settings.question_max_chars,
        "upload_max_mb": services.settings.upload_max_mb,
    }
