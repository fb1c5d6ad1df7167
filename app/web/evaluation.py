"""`/evaluation`: the saved questions, what a run of them found, and the runs before. Edit, remove, import, export.

Owns the page and what is done with questions; runs are `app.web.evaluation_runs`', words `app.web.evaluation_view`'s.
Every action also works as a plain form.
"""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.evaluation import import_questions
from app.edge.inputs import InputText, RowId
from app.errors import InvalidInputError
from app.store import eval_questions, eval_runs
from app.store.engine import Session
from app.store.eval_questions import EvalQuestion
from app.store.eval_runs import RunRow
from app.store.settings import effective
from app.web import evaluation_view
from app.web.evaluation_view import Narrowed
from app.web.templating import render_fragment, render_page

router = APIRouter()

PAGE_SIZE = 50
HOME = "/evaluation"


@router.get(HOME, response_class=HTMLResponse)
def evaluation_page(  # noqa: PLR0913 - what the address may hold
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    run: RowId | None = None,
    removed: RowId | None = None,
    added: Annotated[int | None, Query(ge=0, le=10_000)] = None,
    replaced: Annotated[int, Query(ge=0, le=10_000)] = 0,
    q: str = "",
    which: Narrowed = "",
    shown: Annotated[int, Query(ge=1, le=eval_questions.MOST_QUESTIONS)] = PAGE_SIZE,
) -> HTMLResponse:
    """The page; `run` shows an earlier run, `removed` offers to undo, `added` says what a file brought."""

    def read(session: Session) -> tuple[list[EvalQuestion], list[RunRow], Any]:
        return (
            eval_questions.questions_of(session, user_id),
            eval_runs.list_runs(session, user_id),
            effective(session, services.settings),
        )

    saved, runs, settings = services.database.read(read)
    now, catalog = services.clock.now(), services.catalog
    ended = [one for one in runs if one.state != "running"]
    chosen = next((one for one in ended if one.result is not None and run in (None, one.id)), None)
    context: dict[str, Any] = {
        "running": next((one for one in runs if one.state == "running"), None),
        "settings": settings,
        "result": evaluation_view.result_view(chosen, saved, catalog, now) if chosen else None,
        "runs": [evaluation_view.run_view(one, catalog, now, current=one is chosen) for one in ended],
        "askable": sum(not one.is_gone for one in saved),
        "removed": removed,
        "imported": None if added is None else {"added": added, "replaced": replaced},
        **_list(services, saved, q, which, shown),
    }
    return render_page(services, request, user_id, "evaluation/page.html", place="questions", **context)


@router.get("/ui/evaluation/questions", response_class=HTMLResponse)
def list_fragment(
    services: ServicesDep,
    user_id: UserDep,
    q: str = "",
    which: Narrowed = "",
    shown: Annotated[int, Query(ge=1, le=eval_questions.MOST_QUESTIONS)] = PAGE_SIZE,
) -> HTMLResponse:
    """The list anew: the filter changed, or more is asked for."""
    saved = services.database.read(lambda session: eval_questions.questions_of(session, user_id))
    return render_fragment(services, "evaluation/_list.html", **_list(services, saved, q, which, shown))


@router.post("/ui/evaluation/questions/{question_id}/edit")
def edit(
    request: Request,
    question_id: RowId,
    services: ServicesDep,
    user_id: UserDep,
    question: Annotated[InputText, Form(max_length=400_000)] = "",
) -> Response:
    """Other words for a question."""
    if len(question) > services.settings.question_max_chars:
        raise InvalidInputError("question_too_long", params={"limit": services.settings.question_max_chars})
    changed = services.database.write(
        lambda session: eval_questions.edit_question(session, user_id, question_id, question)
    )
    if "HX-Request" not in request.headers:
        return RedirectResponse(f"{HOME}#question-{question_id}", 303)
    view = evaluation_view.question_view(changed, services.catalog)
    return render_fragment(services, "evaluation/_question.html", question=view)


@router.post("/ui/evaluation/questions/{question_id}/remove")
def remove(request: Request, question_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Takes a question out, and offers to undo that."""
    now = services.clock.now()
    services.database.write(lambda session: eval_questions.remove_question(session, user_id, question_id, now))
    if "HX-Request" not in request.headers:
        return RedirectResponse(f"{HOME}?removed={question_id}", 303)
    saved = services.database.read(lambda session: eval_questions.questions_of(session, user_id))
    context = _list(services, saved, "", "", PAGE_SIZE)
    return render_fragment(services, "evaluation/_removed.html", id=question_id, **context)


@router.post("/ui/evaluation/questions/{question_id}/restore")
def restore(request: Request, question_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """Brings a question back."""
    services.database.write(lambda session: eval_questions.restore_question(session, user_id, question_id))
    if "HX-Request" not in request.headers:
        return RedirectResponse(f"{HOME}#question-{question_id}", 303)
    saved = services.database.read(lambda session: eval_questions.questions_of(session, user_id))
    context = _list(services, saved, "", "", PAGE_SIZE)
    return render_fragment(services, "evaluation/_restored.html", id=question_id, **context)


@router.post("/ui/evaluation/import")
def import_file(request: Request, services: ServicesDep, user_id: UserDep, file: UploadFile) -> Response:
    """Saves the questions of a file, all or none."""
    try:
        text = file.file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("eval_file_not_text") from None
    brought = import_questions(services, user_id, text)
    there = f"{HOME}?{urlencode({'added': brought.added, 'replaced': brought.replaced})}"
    if "HX-Request" in request.headers:
        return Response(headers={"HX-Redirect": there})
    return RedirectResponse(there, 303)


def _list(services: Services, saved: list[EvalQuestion], q: str, which: Narrowed, shown: int) -> dict[str, Any]:
    found = evaluation_view.narrowed(saved, " ".join(q.split()), which)
    more = {"q": q, "which": which, "shown": shown + PAGE_SIZE}
    return {
        "questions": [evaluation_view.question_view(one, services.catalog) for one in found[:shown]],
        "saved": len(saved),
        "matching": len(found),
        "gone": sum(one.is_gone for one in saved),
        "q": q,
        "which": which,
        "more": urlencode(more) if len(found) > shown else "",
    }
