"""Evaluations of the saved questions: at most one of a user's under way, the newest of them kept.

Owns the table. What a result holds is `app.rag.eval_result`'s, who runs it `app.rag.eval_runs`. Every function but the
runner's own (`set_progress`, `finish_run`, `interrupt_all`) checks the owner in SQL.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from app.errors import ConflictError, NotFoundError
from app.store.models.evaluation import EvalRun

KEPT = 20

RunState = Literal["running", "done", "cancelled", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One evaluation. `changes` are what its second settings change, empty where only the current ones were asked;
    `done` of `total` questions were asked, those of both settings together; `result` is there once it is `done`."""

    id: int
    state: RunState
    changes: Mapping[str, Any]
    done: int
    total: int
    result: Mapping[str, Any] | None
    error_code: str | None
    started_at: datetime
    finished_at: datetime | None


def begin_run(session: Session, user_id: int, changes: Mapping[str, Any], total: int, now: datetime) -> int:
    """Stores a running evaluation, clears away the oldest, and gives its id.

    Raises:
        ConflictError: `eval_run_busy`: another one is under way.
    """
    if running_run(session, user_id) is not None:
        raise ConflictError("eval_run_busy")
    run = EvalRun(user_id=user_id, state="running", changes=dict(changes), done=0, total=total, started_at=now)
    session.add(run)
    session.flush()
    kept = select(EvalRun.id).where(EvalRun.user_id == user_id).order_by(EvalRun.id.desc()).limit(KEPT)
    session.execute(delete(EvalRun).where(EvalRun.user_id == user_id, EvalRun.id.not_in(kept)))
    return run.id


def running_run(session: Session, user_id: int) -> RunRow | None:
    """The user's evaluation that is under way."""
    return next(iter(_rows(session, user_id, EvalRun.state == "running")), None)


def list_runs(session: Session, user_id: int) -> list[RunRow]:
    """The user's evaluations, the newest first."""
    return _rows(session, user_id, EvalRun.id > 0)


def get_run(session: Session, user_id: int, run_id: int) -> RunRow:
    """One evaluation.

    Raises:
        NotFoundError: `eval_run_not_found`.
    """
    found = _rows(session, user_id, EvalRun.id == run_id)
    if not found:
        raise NotFoundError("eval_run_not_found")
    return found[0]


def remove_run(session: Session, user_id: int, run_id: int) -> None:
    """Takes an evaluation that has ended out of the list.

    Raises:
        NotFoundError: `eval_run_not_found`.
        ConflictError: `eval_run_busy`: it is still under way.
    """
    if get_run(session, user_id, run_id).state == "running":
        raise ConflictError("eval_run_busy")
    session.execute(delete(EvalRun).where(EvalRun.id == run_id))


def set_progress(session: Session, run_id: int, done: int) -> None:
    """Notes how many questions were asked."""
    session.execute(update(EvalRun).where(EvalRun.id == run_id, EvalRun.state == "running").values(done=done))


def finish_run(
    session: Session, run_id: int, state: RunState, now: datetime, *, result: Any = None, error_code: str | None = None
) -> None:
    """Ends a running evaluation; one that has ended stays as it is."""
    values: dict[str, Any] = {"state": state, "finished_at": now, "error_code": error_code}
    if result is not None:
        values |= {"result": result, "done": EvalRun.total}
    session.execute(update(EvalRun).where(EvalRun.id == run_id, EvalRun.state == "running").values(values))


def interrupt_all(session: Session, now: datetime) -> int:
    """Ends what an earlier life of the process left running; gives how many."""
    ended = update(EvalRun).where(EvalRun.state == "running").values(state="interrupted", finished_at=now)
    return len(session.execute(ended.returning(EvalRun.id)).all())


def _rows(session: Session, user_id: int, condition: ColumnElement[bool]) -> list[RunRow]:
    query = select(EvalRun).where(EvalRun.user_id == user_id, condition).order_by(EvalRun.id.desc())
    return [
        RunRow(
            id=run.id,
            state=cast("RunState", run.state),
            changes=run.changes,
            done=run.done,
            total=run.total,
            result=run.result,
            error_code=run.error_code,
            started_at=run.started_at,
            finished_at=run.finished_at,
        )
        for run in session.scalars(query)
    ]
