"""The loop guard on the settings page: its mode, and the panel that answers whether it earns its keep.

Owns the fragments under `/ui/settings/guard`. The mode is saved by `app.edge.model_settings` as everything else there;
the figures are `app.store.loop_guard_reading`'s, the words `app.web.guard_view`'s. The panel stands outside of the
form: none of its buttons submits anything.
"""

import logging
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from app.edge import model_settings
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import InternalError, error_message
from app.edge.inputs import GuardDays, InputText
from app.logs import kv
from app.store import settings as stored
from app.store.engine import Session, StoreError
from app.store.loop_guard_log import LOOP_GUARD_LOG_DEFAULT_DAYS
from app.store.loop_guard_reading import read_log
from app.web import guard_view
from app.web.guard_view import Panel
from app.web.templating import is_htmx, render_fragment

router = APIRouter(prefix="/ui/settings/guard")

_log = logging.getLogger(__name__)


class ModeFields(BaseModel):
    """The form of the mode."""

    model_config = ConfigDict(extra="forbid")

    mode: InputText


@dataclass(frozen=True, slots=True)
class Guard:
    """The setting as the page shows it; `modes` in the page's order."""

    mode: str
    locked: bool
    modes: tuple[str, ...] = model_settings.GUARD_MODES


@router.get("", response_class=HTMLResponse)
def panel_fragment(services: ServicesDep, since_days: GuardDays = LOOP_GUARD_LOG_DEFAULT_DAYS) -> HTMLResponse:
    """The panel of a window. A log that can't be read is answered as a panel, too, that says why and tries again."""
    try:
        panel = _read(services, since_days)
    except StoreError:
        _log.exception(kv("guard_log_not_read"))
        cause = error_message(services.catalog, InternalError())
        return render_fragment(services, "settings/_guard_slot.html", panel_days=since_days, loading=False, cause=cause)
    return render_fragment(services, "settings/_guard_panel.html", panel=panel, guard=_guard(services))


@router.post("")
async def save_mode(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[ModeFields, Form()]
) -> Response:
    """Saves the mode, in effect from the next question and request on.

    Raises:
        ConflictError: where the environment fixes it.
        InvalidSettingError: for a mode there is none of.
    """
    await model_settings.save(services, user_id, {"loop_guard_mode": fields.mode})
    if not is_htmx(request):
        return RedirectResponse("/settings#guard", status_code=303)
    return await anyio.to_thread.run_sync(_body, services)


def context(services: Services, *, days: int | None = None, notice: str = "") -> dict[str, Any]:
    """What the section needs; with `days` the panel is there at once, else the page asks for it."""
    return {
        "guard": _guard(services),
        "guard_notice": notice,
        "panel": _read(services, days) if days is not None else None,
        "panel_days": days or LOOP_GUARD_LOG_DEFAULT_DAYS,
        "loading": True,
        "cause": "",
    }


def _body(services: Services) -> HTMLResponse:
    notice = services.catalog.t(f"guard_panel.saved_{_guard(services).mode}")
    return render_fragment(services, "settings/_guard.html", **context(services, notice=notice))


def _guard(services: Services) -> Guard:
    return services.database.read(lambda session: _setting(services, session))


def _setting(services: Services, session: Session) -> Guard:
    snapshot = stored.effective(session, services.settings)
    return Guard(snapshot.loop_guard_mode, services.settings.is_locked("loop_guard_mode"))


def _read(services: Services, days: int) -> Panel:
    now = int(services.clock.now().timestamp())

    def work(session: Session) -> Panel:
        guard, reading = _setting(services, session), read_log(session, now, days)
        return guard_view.panel(reading, services.catalog, is_off=guard.mode == "off", is_locked=guard.locked)

    return services.database.read(work)
