"""Whether taking documents in is paused: one row of the settings table, so that it outlives the process.

Owns that row. It is no setting of `app.settings`: nobody writes it into an environment, and a page changes it at once.
Used by `app.ingest.pausing`.
"""

from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.store.models.setup import Setting

_KEY = "ingest_paused"


def is_paused(session: Session) -> bool:
    """Whether somebody paused it."""
    return session.get(Setting, _KEY) is not None


def set_paused(session: Session, paused: bool, user_id: int, now: datetime) -> bool:
    """Pauses, or lets it go on; False when it was so before."""
    if is_paused(session) == paused:
        return False
    if paused:
        session.add(Setting(key=_KEY, value=True, updated_at=now, updated_by=user_id))
    else:
        session.execute(delete(Setting).where(Setting.key == _KEY))
    return True
