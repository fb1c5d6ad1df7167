"""Where a search may look, as SQL.

Owns the one condition that keeps other people's documents out; full text, vectors and the rows of the hits all apply
it. It is built once and filled by parameters (`app.store.scope`): building it anew for each statement took longer than
running it.
"""

from sqlalchemy import ColumnElement, Select, select

from app.store.models import Document
from app.store.scope import Scope, in_scope

__all__ = ["VISIBLE", "Scope", "is_visible"]

VISIBLE: Select[int] = select(Document.id).where(*in_scope(), Document.status != "failed")
"""The ids of documents that the asker may read (collections owned or shared with them) and the filters let through. To
be filled by `Scope.parameters()`.

A document counts as soon as it has chunks, while its vectors are still to come or a new version is being read; one that
failed does not.
"""


def is_visible(document_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether one document is visible, for chunks found by something else: as `VISIBLE`, but looked up for each row. To
    list every visible document first took 4 ms a statement in a library of 5,000."""
    return VISIBLE.where(Document.__table__.c.id == document_id).correlate_except(Document).exists()
