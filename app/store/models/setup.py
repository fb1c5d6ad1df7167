"""Users and settings."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime

LOCAL_USER_ID = 1
"""The user of an installation without login; the first migration makes the row."""


PUT_AWAY = "put_away."
"""What keys of settings begin with that no admin sets: `app.store.put_away`'s."""


class User(Base):
    """A person. Without login there is one, `local`."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    username: Mapped[str] = mapped_column(String(100), unique=True)
    display_name: Mapped[str] = mapped_column(String(200))
    password_hash: Mapped[str | None] = mapped_column(String(300))
    role: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Setting(Base):
    """What an admin changed in the page: a field of `app.settings.EDITABLE` and its JSON value. A few rows are Docent's
    own: hints that people put away (`app.store.put_away`), a pause (`app.store.pausing`), which documents were read
    again (`app.store.rereading.KEY`)."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(String(100), primary_key=True)
    value: Mapped[Any] = mapped_column(JSON)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_by: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
