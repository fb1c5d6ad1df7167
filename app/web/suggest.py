"""What the composer offers while a name is typed: documents behind `@`, collections behind `#`.

One fragment of HTML for js/suggest.js; nothing of the question but the name that was begun comes here.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from app.edge.deps import ServicesDep, UserDep
from app.rag.chips import written
from app.render.names import shown_name
from app.store import suggesting
from app.web.templating import render_fragment

router = APIRouter()

_OPENED = "\"'“„«"


@dataclass(frozen=True, slots=True)
class Offer:
    """One row: `text` is put into the question, `name` and `more` are shown."""

    text: str
    name: str
    more: str


@router.get("/ui/chat/suggest", response_class=HTMLResponse)
def suggest(services: ServicesDep, user_id: UserDep, typed: Annotated[str, Query(max_length=400)] = "") -> HTMLResponse:
    """The rows for what was typed, its sign included; none once it is a whole name."""
    sign, beginning = typed[:1], typed[1:].lstrip(_OPENED)
    if sign not in ("@", "#") or (beginning != typed[1:] and typed[1] == typed[-1] and len(typed) > 2):
        return render_fragment(services, "chat/_suggestions.html", offers=[])
    kind: suggesting.NameKind = "document" if sign == "@" else "collection"
    rows = services.database.read(lambda session: suggesting.suggest(session, user_id, beginning, kind))
    offers = [_offer(sign, row) for row in rows]
    shown = [offer for offer in offers if offer is not None]
    if any(offer.text == typed for offer in shown):
        shown = []
    return render_fragment(services, "chat/_suggestions.html", offers=shown)


def _offer(sign: Literal["@", "#"], row: suggesting.Suggestion) -> Offer | None:
    text = written(sign, row.name)
    if text is None:
        return None
    folder, slash, name = row.name.rpartition("/")
    more = " · ".join(filter(None, (shown_name(row.title), shown_name(folder + slash), shown_name(row.place))))
    return Offer(text, shown_name(name), more)
