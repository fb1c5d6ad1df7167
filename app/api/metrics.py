"""`/metrics`: this process's numbers in Prometheus' text form, readable by anyone as `/healthz` is.

Owns what is asked at the moment of reading; counting is `app.metrics`'. Asks the database for one number and the model
server for nothing. A plain `def` route: it runs on a worker thread, off the event loop.
"""

from fastapi import APIRouter
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from app.edge.deps import Services, ServicesDep
from app.metrics import Now
from app.store import jobs
from app.store.engine import StoreError

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response)
def metrics(services: ServicesDep) -> Response:
    """Every metric; where the database can't be asked, its number is NaN and the rest is there."""
    now = Now(
        active_turns=services.turns.active,
        guard_queue=services.guard_log.depth,
        guard_lost={reason: (lost.trips, lost.scans) for reason, lost in services.guard_log.lost.items()},
        ingest_waiting=_waiting(services),
    )
    return Response(services.metrics.exposition(now), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _waiting(services: Services) -> int | None:
    try:
        return services.database.read(jobs.pending)
    except StoreError:
        return None
