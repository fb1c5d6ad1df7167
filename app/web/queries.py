"""`/queries`: questions the documents did not answer. Each is a gap in the library that a document could fill. Below
them the questions whose answers a reader marked as not helpful."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.catalog import Catalog
from app.edge.answers import reader_href, title_of
from app.edge.deps import ServicesDep, UserDep
from app.errors import NotFoundError
from app.render.names import shown_name
from app.store import chats, marks, queries
from app.store.engine import Session
from app.store.queries import GapRow
from app.web.templating import render_page

router = APIRouter()

PAGE_SIZE = 50
MOST = 500


@dataclass(frozen=True, slots=True)
class Near:
    """One of the passages that came nearest."""

    href: str
    title: str
    score: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A question without an answer, as words. `chat` and `receipt` are empty once the chat was deleted."""

    question: str
    facts: str
    nearest: tuple[Near, ...]
    chat: str
    receipt: str
    again: str


@dataclass(frozen=True, slots=True)
class Unhelpful:
    """A question whose answer was of no help, as words; `reason` is the reader's, or empty."""

    question: str
    when: str
    reason: str
    chat: str
    receipt: str


@router.get("/queries", response_class=HTMLResponse)
def queries_page(request: Request, services: ServicesDep, user_id: UserDep, shown: int = PAGE_SIZE) -> HTMLResponse:
    """The list, newest first; `shown` grows with "Show more"."""
    shown = min(max(shown, PAGE_SIZE), MOST)
    found = services.database.read(lambda session: _read(session, user_id, shown + 1))
    threshold, now = services.settings.retrieval_min_score, services.clock.now()
    gaps = [
        _gap(row, answer, threshold, services.catalog.when(row.created_at, now), services.catalog)
        for row, answer in found[:shown]
    ]
    unhelpful = [
        Unhelpful(
            question=row.question,
            when=services.catalog.when(row.asked_at, now),
            reason=row.reason or "",
            chat=f"/chats/{row.chat_id}#turn-{row.turn_id}",
            receipt=f"/turns/{row.turn_id}",
        )
        for row in services.database.read(lambda session: marks.list_unhelpful(session, user_id))
    ]
    more = f"/queries?shown={shown + PAGE_SIZE}" if len(found) > shown and shown < MOST else ""
    return render_page(
        services,
        request,
        user_id,
        "queries/page.html",
        place="questions",
        gaps=gaps,
        more=more,
        unhelpful=unhelpful,
    )


def _read(session: Session, user_id: int, limit: int) -> list[tuple[GapRow, chats.MessageRow | None]]:
    found: list[tuple[GapRow, chats.MessageRow | None]] = []
    for row in queries.list_gaps(session, user_id, limit=limit):
        try:
            answer = None if row.message_id is None else chats.get_message(session, user_id, row.message_id)
        except NotFoundError:
            answer = None
        found.append((row, answer))
    return found


def _gap(row: GapRow, answer: chats.MessageRow | None, threshold: float, when: str, catalog: Catalog) -> Gap:
    sources = answer.sources if answer else ()
    score = catalog.t("queries.score", score=catalog.number(row.top_score), threshold=catalog.number(threshold))
    return Gap(
        question=row.question,
        facts=f"{when} · {score if row.top_score else catalog.t('queries.no_hits')}",
        nearest=tuple(_near(source, catalog) for source in sources),
        chat=_place(row.chat_id, answer),
        receipt=f"/turns/{answer.turn_id}" if answer else "",
        again="/?" + urlencode({"q": row.question}),
    )


def _place(chat_id: int | None, answer: chats.MessageRow | None) -> str:
    """Where the question stands in its chat; empty when the chat is gone."""
    if chat_id is None:
        return ""
    return f"/chats/{chat_id}#turn-{answer.turn_id}" if answer else f"/chats/{chat_id}"


def _near(source: Mapping[str, Any], catalog: Catalog) -> Near:
    return Near(
        href=reader_href({**source, "n": None}, ""),
        title=shown_name(title_of(source)),
        score=catalog.number(float(source.get("score") or 0.0)),
    )
