"""What a reader says of an answer, over HTTP: helpful or not, which passages were right, that the documents don't say.

Owns the requests' shapes; the rules are `app.turns.marking`'s. Every route answers with what is said now.
"""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import InputText, RowId, TurnId
from app.errors import NotFoundError
from app.store import chats
from app.store.engine import Session
from app.store.marks import Verdict
from app.turns import marking

router = APIRouter(prefix="/api/turns", tags=["evaluation"])


class MarkBody(BaseModel):
    """A verdict, and why."""

    model_config = ConfigDict(extra="forbid")

    verdict: Verdict
    reason: Annotated[InputText, Field(max_length=10_000)] | None = None


@router.put("/{turn_id}/mark")
def put_mark(turn_id: TurnId, body: MarkBody, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{mark, saved, right}`: the mark, the saved question, the numbers of the sources that are right."""

    def work(session: Session) -> dict[str, Any]:
        now = services.clock.now()
        marking.mark_answer(session, user_id, turn_id, body.verdict, body.reason, now)
        return _said(session, user_id, turn_id)

    return services.database.write(work)


@router.delete("/{turn_id}/mark")
def delete_mark(turn_id: TurnId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Takes the mark back, with what it alone saved."""

    def work(session: Session) -> dict[str, Any]:
        marking.unmark_answer(session, user_id, turn_id, services.clock.now())
        return _said(session, user_id, turn_id)

    return services.database.write(work)


@router.put("/{turn_id}/passages/{n}")
def put_right(turn_id: TurnId, n: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Source `n` answers the question: saves both."""
    return _set_right(services, user_id, turn_id, n, right=True)


@router.delete("/{turn_id}/passages/{n}")
def delete_right(turn_id: TurnId, n: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """It does not; without any right passage left the question is not saved any more."""
    return _set_right(services, user_id, turn_id, n, right=False)


@router.put("/{turn_id}/unanswerable")
def put_unanswerable(turn_id: TurnId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """The documents don't say: saves the question as such."""
    return _set_unanswerable(services, user_id, turn_id, on=True)


@router.delete("/{turn_id}/unanswerable")
def delete_unanswerable(turn_id: TurnId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Takes that back."""
    return _set_unanswerable(services, user_id, turn_id, on=False)


def _set_right(services: Services, user_id: int, turn_id: str, n: int, *, right: bool) -> dict[str, Any]:
    def work(session: Session) -> dict[str, Any]:
        marking.set_right(session, user_id, turn_id, n, right, services.clock.now())
        return _said(session, user_id, turn_id)

    return services.database.write(work)


def _set_unanswerable(services: Services, user_id: int, turn_id: str, *, on: bool) -> dict[str, Any]:
    def work(session: Session) -> dict[str, Any]:
        marking.set_unanswerable(session, user_id, turn_id, on, services.clock.now())
        return _said(session, user_id, turn_id)

    return services.database.write(work)


def _said(session: Session, user_id: int, turn_id: str) -> dict[str, Any]:
    answer = chats.answer_of(session, user_id, turn_id)
    if answer is None:
        raise NotFoundError("turn_not_found")
    said = marking.said_of(session, user_id, {turn_id: answer})[turn_id]
    return {
        "mark": None if said.mark is None else asdict(said.mark),
        "saved": None if said.question is None else asdict(said.question),
        "right": sorted(said.right),
    }
