"""`POST /api/search`: hybrid search without a model.

Owns the request's shape. Ranking is `app.search`'s. A plain `def` route: it runs on a worker
thread, off the event loop.
"""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.edge.deps import ServicesDep, UserDep
from app.search.hits import SearchFilters
from app.search.listing import as_fields, check_query

MAX_K = 50
MAX_IDS = 1000
"""Ids in one filter."""

router = APIRouter()

Ids = Annotated[list[Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]], Field(max_length=MAX_IDS)]
Clamped = Annotated[int, Field(strict=True), AfterValidator(lambda k: min(max(k, 1), MAX_K))]


class FiltersBody(BaseModel):
    """Where to look; what is left out or null means anywhere."""

    model_config = ConfigDict(extra="forbid")

    collections: Ids | None = None
    documents: Ids | None = None


class SearchBody(BaseModel):
    """A question, how many hits (1 to 50; anything else is taken as the nearer of the two), and where to look."""

    model_config = ConfigDict(extra="forbid")

    query: str
    k: Clamped = 12
    filters: FiltersBody = FiltersBody()


@router.post("/api/search")
def search(body: SearchBody, services: ServicesDep, user_id: UserDep) -> dict[str, list[dict[str, Any]]]:
    """The chunks that fit the question best, best first.

    Raises:
        InvalidInputError: for a blank question or one over QUESTION_MAX_CHARS.
    """
    check_query(body.query, services.settings.question_max_chars)
    filters = SearchFilters(_ids(body.filters.collections), _ids(body.filters.documents))
    hits = services.searcher.search(body.query, user_id=user_id, k=body.k, filters=filters)
    return {"hits": [as_fields(hit) for hit in hits]}


def _ids(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)
