"""The settings table: what an admin changed in the page.

Owns reading and writing it and the snapshot that lies over the defaults and under the environment. Which fields may be
changed is `app.settings.EDITABLE`; what a value must look like to be accepted from a page is `app.api.settings`'.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pydantic import ValidationError
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.logs import kv, redactor
from app.settings import EDITABLE, EMBEDDER, SECRET, Settings
from app.store.engine import Database
from app.store.models.setup import PUT_AWAY, Setting

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FieldView:
    """One setting as a page may show it: never a secret's value, only its last four characters."""

    value: object
    locked: bool
    is_set: bool
    last4: str | None = None


def effective(session: Session, settings: Settings) -> Settings:
    """A new snapshot: the table under the environment. A turn or job takes one at its start.

    `settings` is the environment's. A value in the table that is no longer valid is left out with a warning.
    """
    stored: dict[str, object] = {}
    rows = select(Setting.key, Setting.value).where(~Setting.key.startswith(PUT_AWAY)).order_by(Setting.key)
    for key, value in session.execute(rows):
        if key not in EDITABLE or settings.is_locked(key) or (key in EMBEDDER and settings.is_embedder_locked):
            continue
        checked = _checked(key, value)
        if checked is None:
            _log.warning(kv("setting_ignored", key=key))
        else:
            stored[key] = checked
    for key in SECRET & stored.keys():
        redactor.add(str(stored[key]))
    if not stored:
        return settings
    # Not model_copy: it would count the stored fields as set, and `is_locked` would take them for the environment's.
    return Settings.model_construct(settings.model_fields_set, **{**dict(settings), **stored})


class Snapshots:
    """The snapshot in effect, read again only where something was written since: a request of another program must not
    wait for a thread each time. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: tuple[Settings, int, Settings] | None = None

    async def current(self, settings: Settings) -> Settings:
        """`effective` for the environment's `settings`."""
        if self._known is not None and self._known[0] is settings and self._known[1] == self._database.writes:
            return self._known[2]
        writes = self._database.writes
        snapshot = await self._database.aread(lambda session: effective(session, settings))
        self._known = settings, writes, snapshot
        return snapshot


def put(session: Session, changes: Mapping[str, object], user_id: int, now: datetime) -> None:
    """Stores JSON values of editable fields; None removes a field's row, so that the default applies again.

    Raises:
        KeyError: for a field that is not editable; a page never offers one.
    """
    for key, value in changes.items():
        if key not in EDITABLE:
            raise KeyError(key)
        if value is None:
            session.execute(delete(Setting).where(Setting.key == key))
        else:
            session.merge(Setting(key=key, value=value, updated_at=now, updated_by=user_id))


def describe(environment: Settings, snapshot: Settings) -> dict[str, FieldView]:
    """The editable fields as a page shows them; `snapshot` is what `effective` gave for `environment`."""
    views: dict[str, FieldView] = {}
    for key in sorted(EDITABLE):
        value: object = getattr(snapshot, key)
        locked = environment.is_locked(key) or (key in EMBEDDER and environment.is_embedder_locked)
        if key in SECRET:
            text = str(value) if value else ""
            views[key] = FieldView(None, locked, bool(text), text[-4:] if len(text) >= 12 else None)
        else:
            shown = [str(part) for part in cast("tuple[object, ...]", value)] if isinstance(value, tuple) else value
            views[key] = FieldView(shown, locked, bool(shown))
    return views


def _checked(key: str, value: object) -> object | None:
    """`value` as the field's own type, or None when it does not fit."""
    if value is None:
        return None
    try:
        # An address is refused without a model; here each field is looked at alone, and the two are stored together.
        bare = Settings.model_construct(embed_model="-")
        checked = Settings.__pydantic_validator__.validate_assignment(bare, key, value)
    except ValidationError:
        return None
    return getattr(checked, key)
