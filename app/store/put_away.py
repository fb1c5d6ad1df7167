"""What a person has read and put away: a hint that a page need not show again. In the settings table, under names of
its own, one row for each person and hint.

Owns those rows; `app.store.settings` leaves them alone. Used by `app.web.language_hint`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from sqlalchemy.orm import Session

from app.store.models.setup import PUT_AWAY, Setting


def put_away(session: Session, user_id: int, hint: str, about: Sequence[str], now: datetime) -> None:
    """Notes that `user_id` needs `hint` no more for what it is `about` now."""
    session.merge(Setting(key=_key(user_id, hint), value=list(about), updated_at=now, updated_by=user_id))


def was_about(session: Session, user_id: int, hint: str) -> frozenset[str]:
    """What the hint was about when it was put away; empty where it never was."""
    row = session.get(Setting, _key(user_id, hint))
    value: object = None if row is None else row.value
    return frozenset(map(str, cast("list[object]", value))) if isinstance(value, list) else frozenset()


def _key(user_id: int, hint: str) -> str:
    return f"{PUT_AWAY}{hint}.{user_id}"
