"""`GET /api/proxy/loop-guard-trips`: the loop guard's log as JSON.

Owns the request's parameters. The figures are `app.store.loop_guard_reading`'s, as for the command and the panel. A
plain `def` route: it runs on a worker thread, off the event loop.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.edge.deps import ServicesDep
from app.edge.inputs import GuardDays, InputText
from app.guard.listing import as_fields
from app.store.loop_guard_log import LOOP_GUARD_LOG_DEFAULT_DAYS
from app.store.loop_guard_reading import Filters, read_log

router = APIRouter()


Name = Annotated[InputText | None, Query(max_length=300)]


@router.get("/api/proxy/loop-guard-trips")
def loop_guard_trips(
    services: ServicesDep,
    since_days: GuardDays = LOOP_GUARD_LOG_DEFAULT_DAYS,
    path: Name = None,
    model: Name = None,
    mode: Name = None,
    env: Name = None,
) -> dict[str, Any]:
    """The window of `since_days` days (1 to 90; anything beyond is taken as the nearer of the two) that ends today,
    kept to one path, model, mode or environment where named."""
    filters = Filters(path, model, mode, env)
    now = int(services.clock.now().timestamp())
    return as_fields(services.database.read(lambda session: read_log(session, now, since_days, filters)))
