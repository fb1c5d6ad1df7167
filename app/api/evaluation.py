"""The evaluation over HTTP: saved questions as a file, and runs.

Owns paths and the shape of answers; inputs are `app.edge.evaluation`'s.
"""

from dataclasses import asdict
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from app.edge.deps import ServicesDep, UserDep
from app.edge.evaluation import Changes, export_questions, import_questions
from app.edge.inputs import RowId
from app.errors import InvalidInputError
from app.store import eval_questions, eval_runs
from app.store.engine import Session
from app.store.eval_runs import RunRow

router = APIRouter(prefix="/api/eval", tags=["evaluation"])

JSON_LINES = "application/x-ndjson"


@router.get("/questions", response_class=Response)
def read_questions(services: ServicesDep, user_id: UserDep) -> Response:
    """Every saved question, a JSON object a line, as `docent eval` and POST read them."""
    headers = {"Content-Disposition": 'attachment; filename="questions.jsonl"', "Cache-Control": "no-store"}
    return Response(export_questions(services, user_id), media_type=JSON_LINES, headers=headers)


@router.post("/questions")
async def add_questions(request: Request, services: ServicesDep, user_id: UserDep) -> dict[str, int]:
    """Saves the questions of a body of such lines, all or none: `{added, replaced}`.

    422 `eval_lines_invalid` names the lines that are no questions.
    """
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("eval_file_not_text") from None
    return asdict(await anyio.to_thread.run_sync(import_questions, services, user_id, text))


@router.delete("/questions/{question_id}", status_code=204)
def remove_question(question_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes a saved question out."""
    now = services.clock.now()
    services.database.write(lambda session: eval_questions.remove_question(session, user_id, question_id, now))
    return Response(status_code=204)


@router.get("/runs")
def list_runs(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{runs: [row…]}`, the newest first, without what became of each question."""
    rows = services.database.read(lambda session: eval_runs.list_runs(session, user_id))
    return {"runs": [_row(row, whole=False) for row in rows]}


@router.post("/runs", status_code=202)
def start_run(body: Changes, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Begins a run; the settings named are asked beside the current ones. 409 `eval_run_busy` while one is under
    way."""
    run_id = services.evaluations.start(user_id, body.values())
    return _row(services.database.read(lambda session: eval_runs.get_run(session, user_id, run_id)))


@router.get("/runs/{run_id}")
def read_run(run_id: RowId, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """One run with its result."""
    return _row(services.database.read(lambda session: eval_runs.get_run(session, user_id, run_id)))


@router.post("/runs/{run_id}/cancel", status_code=204)
def cancel_run(run_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Ends a run; one that has ended stays as it is."""
    services.evaluations.cancel(user_id, run_id)
    return Response(status_code=204)


@router.delete("/runs/{run_id}", status_code=204)
def remove_run(run_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes a run that has ended out of the list."""

    def work(session: Session) -> None:
        eval_runs.remove_run(session, user_id, run_id)

    services.database.write(work)
    return Response(status_code=204)


def _row(run: RunRow, *, whole: bool = True) -> dict[str, Any]:
    row = asdict(run)
    if not whole and row["result"] is not None:
        del row["result"]["questions"]
    return row
