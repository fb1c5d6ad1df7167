"""Runs of the evaluation, from the page: begin, follow, cancel, take out of the list.

Owns the actions under `/ui/evaluation/run`; the page is `app.web.evaluation`'s, the work `app.rag.eval_runs`'.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from app.edge.deps import ServicesDep, UserDep
from app.edge.evaluation import Changes
from app.edge.inputs import RowId
from app.store import eval_runs
from app.web.evaluation import HOME
from app.web.templating import render_fragment

router = APIRouter(prefix="/ui/evaluation")


@router.post("/run")
def begin(request: Request, services: ServicesDep, user_id: UserDep, changes: Annotated[Changes, Form()]) -> Response:
    """Begins a run; what is filled in is asked beside the current settings."""
    services.evaluations.start(user_id, changes.values())
    return _home(request)


@router.get("/run")
def progress(services: ServicesDep, user_id: UserDep) -> Response:
    """How far the run is; once none is under way, the page anew."""
    running = services.database.read(lambda session: eval_runs.running_run(session, user_id))
    if running is None:
        return Response(headers={"HX-Redirect": HOME})
    return render_fragment(services, "evaluation/_running.html", running=running)


@router.post("/run/{run_id}/cancel")
def cancel(request: Request, run_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Ends the run; the earlier ones stay."""
    services.evaluations.cancel(user_id, run_id)
    return _home(request)


@router.post("/run/{run_id}/remove")
def remove(request: Request, run_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes a run out of the list."""
    services.database.write(lambda session: eval_runs.remove_run(session, user_id, run_id))
    return _home(request)


def _home(request: Request) -> Response:
    if "HX-Request" in request.headers:
        return Response(headers={"HX-Redirect": HOME})
    return RedirectResponse(HOME, 303)
