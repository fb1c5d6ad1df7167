"""The library's progress box: what is being added, how far it is, and pausing it.

Owns `/ui/library/progress` and `/ui/library/pause`; what the box says is `app.web.library_view`'s, what a pause does
`app.ingest.pausing`'s. The library page draws the box with `adding_of`.
"""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import Moment
from app.store import documents
from app.web import library_view
from app.web.library_view import Adding
from app.web.templating import is_htmx, render_fragment

router = APIRouter()


class PauseFields(BaseModel):
    """What the box's button sends."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["pause", "continue"]
    since: Moment | None = None


@router.get("/ui/library/progress", response_class=HTMLResponse)
def progress_fragment(
    services: ServicesDep, user_id: UserDep, since: Moment | None = None, seen: int = 0, hide: bool = False
) -> HTMLResponse:
    """The progress box. `since` keeps the batch that the page watches once it is over, until `hide` asks for none.

    The page is told to bring its list anew when files came, and when the last one is done: failed ones stand first.
    """
    return _fragment(services, user_id, since, seen=seen, hide=hide)


@router.post("/ui/library/pause")
def pause(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[PauseFields, Form()]
) -> Response:
    """Pauses taking documents in, or continues; answers with the box."""
    services.pausing.turn(fields.action == "pause", user_id)
    if not is_htmx(request):
        return RedirectResponse("/library", status_code=303)
    return _fragment(services, user_id, fields.since)


def adding_of(services: Services, user_id: int, since: datetime | None) -> Adding | None:
    """The progress box of the batch that is going on, or of the one that began at `since`."""
    began = since or services.progress.began()
    counted = services.database.read(lambda session: documents.progress(session, user_id, began))
    batch = services.progress.batch(counted)
    return library_view.adding(batch, services.catalog, paused=services.pausing.is_on())


def _fragment(
    services: Services, user_id: int, since: datetime | None, *, seen: int = 0, hide: bool = False
) -> HTMLResponse:
    box = adding_of(services, user_id, since)
    if hide and box is not None and not box.working:
        box = None
    began = since if since is not None and box is not None else services.progress.began()
    response = render_fragment(services, "library/_progress.html", adding=box, since=began.isoformat())
    if box is not None and (box.total > seen or not box.working):
        response.headers["HX-Trigger"] = "library-changed"
    return response
