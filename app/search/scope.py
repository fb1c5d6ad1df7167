"""Where a search may look, as SQL.

Owns the one condition that keeps other people's documents out; full text, vectors and the rows of the hits all apply
it. It is built once and filled by parameters: building it anew for each statement took longer than running it.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, Integer, Select, String, bindparam, or_, select

from app.search.hits import SearchFilters
from app.store.among import values_of
from app.store.collections import readable_ids
from app.store.models import Document


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, and where they want to look."""

    user_id: int
    filters: SearchFilters

    @property
    def is_narrow(self) -> bool:
        """Whether documents are named."""
        return self.filters.documents is not None

    def parameters(self) -> dict[str, Any]:
        """What fills `VISIBLE`."""
        return {
            "scope_user": self.user_id,
            "scope_collections": _listed(self.filters.collections),
            "scope_documents": _listed(self.filters.documents),
        }


def _listed(ids: tuple[int, ...] | None) -> str | None:
    return None if ids is None else json.dumps(ids)


def _asked_for(column: ColumnElement[int], parameter: str) -> ColumnElement[bool]:
    return or_(bindparam(parameter, type_=String).is_(None), column.in_(values_of(parameter)))


VISIBLE: Select[int] = select(Document.id).where(
    Document.collection_id.in_(readable_ids(cast("int", bindparam("scope_user", type_=Integer)))),
    Document.deleted_at.is_(None),
    Document.status != "failed",
    _asked_for(Document.__table__.c.collection_id, "scope_collections"),
    _asked_for(Document.__table__.c.id, "scope_documents"),
)
"""The ids of documents that the asker may read (collections owned or shared with them) and the filters let through. To
be filled by `Scope.parameters()`.

A document counts as soon as it has chunks, while its vectors are still to come or a new version is being read; one that
failed does not.
"""


def is_visible(document_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether one document is visible, for chunks found by something else: as `VISIBLE`, but looked up for each row. To
    list every visible document first took 4 ms a statement in a library of 5,000."""
    return VISIBLE.where(Document.__table__.c.id == document_id).correlate_except(Document).exists()
