"""What the database says about itself: its schema's revision and SQLite's version."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """The schema's revision as stored, and the version of the SQLite library in use."""

    revision: str | None
    sqlite_version: str


def read_health(session: Session) -> DatabaseHealth:
    """Two small reads.

    Raises:
        StoreError: when the database can't be read, or was never migrated.
    """
    return DatabaseHealth(
        revision=session.execute(text("SELECT version_num FROM alembic_version")).scalar(),
        sqlite_version=str(session.execute(text("SELECT sqlite_version()")).scalar()),
    )
