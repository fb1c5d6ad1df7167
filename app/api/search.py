"""`POST /api/search`: hybrid search without a model.

Owns the request's shape. Ranking is `app.search`'s. A plain `def` route: it runs on a worker
thread, off the event loop.
"""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.edge.deps import ServicesDep, UserDep
from app.edge.inputs import InputText
from app.search.asking import Asked, filters_of
from app.search.hits import SearchFilters
from app.search.listing import as_fields, check_query

MAX_K = 50
MAX_IDS = 1000
"""Ids in one filter."""
MAX_TYPES = 50

router = APIRouter()

Ids = Annotated[list[Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]], Field(max_length=MAX_IDS)]
Clamped = Annotated[int, Field(strict=True), AfterValidator(lambda k: min(max(k, 1), MAX_K))]


class FiltersBody(BaseModel):
    """Where to look; what is left out or null means anywhere.

    `path` is how a document's path begins, `types` are words such as `pdf` or `code`, `since` and `until` are days
    (2026-11-30, both included) or moments with a zone.
    """

    model_config = ConfigDict(extra="forbid")

    collections: Ids | None = None
    documents: Ids | None = None
    path: InputText | None = None
    types: Annotated[list[InputText], Field(max_length=MAX_TYPES)] | None = None
    since: InputText | None = None
    until: InputText | None = None

    def as_filters(self) -> SearchFilters:
        """The filters as a search takes them.

        Raises:
            InvalidInputError: `app.search.asking`'s.
        """
        return filters_of(
            Asked(_ids(self.collections), _ids(self.documents), self.path, self.types, self.since, self.until)
        )


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
        InvalidInputError: for a blank question, one over QUESTION_MAX_CHARS, or a filter that means nothing.
    """
    check_query(body.query, services.settings.question_max_chars)
    filters = body.filters.as_filters()
    hits = services.searcher.search(body.query, user_id=user_id, k=body.k, filters=filters)
    return {"hits": [as_fields(hit) for hit in hits]}


def _ids(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)
