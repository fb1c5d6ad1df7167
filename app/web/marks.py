"""Marks under an answer, and in the reader beside a citation: the actions, for htmx and for plain forms.

Owns the fragments under `/ui/turns/{id}/…`; the rules are `app.turns.marking`'s, the words `app.web.marks_view`'s.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from app.edge.answers import reader_href
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import InputText, RowId, TurnId
from app.errors import NotFoundError
from app.store import chats
from app.store.chats import MessageRow
from app.store.engine import Session
from app.store.marks import Verdict
from app.turns import marking
from app.web.chats import read_turn
from app.web.templating import render_fragment

router = APIRouter(prefix="/ui/turns")


class VerdictFields(BaseModel):
    """The verdict pressed; an empty one takes it back."""

    model_config = ConfigDict(extra="forbid")

    verdict: Verdict | Literal[""] = ""
    reason: Annotated[InputText, Field(max_length=10_000)] | None = None


class PassageFields(BaseModel):
    """The one button that was pressed."""

    model_config = ConfigDict(extra="forbid")

    right: RowId | None = None
    wrong: RowId | None = None
    unanswerable: Literal["", "0", "1"] = ""
    view: Literal["chat", "reader"] = "chat"


@router.post("/{turn_id}/mark")
def mark(
    request: Request,
    turn_id: TurnId,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[VerdictFields, Form()],
) -> Response:
    """Helpful, not helpful, or neither."""
    now = services.clock.now()

    def work(session: Session) -> None:
        if fields.verdict:
            marking.mark_answer(session, user_id, turn_id, fields.verdict, fields.reason, now)
        else:
            marking.unmark_answer(session, user_id, turn_id, now)

    return _after(request, services, user_id, turn_id, work)


@router.post("/{turn_id}/passages")
def passages(
    request: Request,
    turn_id: TurnId,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[PassageFields, Form()],
) -> Response:
    """A passage was right, or was not; or the documents don't say."""
    now, n = services.clock.now(), fields.right or fields.wrong

    def work(session: Session) -> None:
        if n is not None:
            marking.set_right(session, user_id, turn_id, n, fields.right is not None, now)
        elif fields.unanswerable:
            marking.set_unanswerable(session, user_id, turn_id, fields.unanswerable == "1", now)

    if fields.view == "reader" and n is not None:
        services.database.write(work)
        return _in_reader(request, services, user_id, turn_id, n)
    return _after(request, services, user_id, turn_id, work, opened=True)


def right_in_reader(session: Session, user_id: int, answer: MessageRow, n: int) -> dict[str, Any]:
    """What `reader/_right.html` shows of source `n` of an answer."""
    said = marking.said_of(session, user_id, {answer.turn_id: answer})[answer.turn_id]
    return {"turn_id": answer.turn_id, "n": n, "right": n in said.right}


def _in_reader(request: Request, services: Services, user_id: int, turn_id: str, n: int) -> Response:
    def read(session: Session) -> tuple[MessageRow, dict[str, Any]]:
        answer = chats.answer_of(session, user_id, turn_id)
        if answer is None:
            raise NotFoundError("turn_not_found")
        return answer, right_in_reader(session, user_id, answer, n)

    answer, shown = services.database.read(read)
    if "HX-Request" not in request.headers:
        source = next(row for row in answer.sources if row.get("n") == n)
        return RedirectResponse(reader_href(source, turn_id), 303)
    return render_fragment(services, "reader/_right.html", right=shown)


def _after(
    request: Request,
    services: Services,
    user_id: int,
    turn_id: str,
    work: Callable[[Session], None],
    *,
    opened: bool = False,
) -> Response:
    """Does the work, and says what is said now."""
    services.database.write(work)
    chat_id, view = services.database.read(lambda session: read_turn(session, services, user_id, turn_id))
    if "HX-Request" not in request.headers:
        return RedirectResponse(f"/chats/{chat_id}#turn-{turn_id}", 303)
    marks = replace(view.marks, is_open=view.marks.is_open or opened)
    return render_fragment(services, "chat/_marked.html", turn=replace(view, marks=marks))
