"""Where a search may look, as SQL.

Owns the one condition that keeps other people's documents out; full text and vectors both apply it before anything is
ranked or shown.
"""

from sqlalchemy import Select, select

from app.search.hits import SearchFilters
from app.store.collections import readable_ids
from app.store.models import Collection, Document


def visible_documents(user_id: int, filters: SearchFilters) -> Select[int]:
    """The ids of documents that `user_id` may read (collections owned or shared with them) and `filters` let through.

    A document counts as soon as it has chunks, while its vectors are still to come or a new version is being read; one
    that failed does not.
    """
    readable = readable_ids(user_id)
    if filters.collections is not None:
        readable = readable.where(Collection.id.in_(filters.collections))
    visible = select(Document.id).where(
        Document.collection_id.in_(readable), Document.deleted_at.is_(None), Document.status != "failed"
    )
    if filters.documents is not None:
        visible = visible.where(Document.id.in_(filters.documents))
    return visible
