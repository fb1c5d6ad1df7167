"""Brings the database to the newest schema at start, and tells whether it is there.

Owns running Alembic; the schema itself is `app.store.models`, its history `migrations/`. Called by `main`, `cli` and
tests, which build their schema the same way. Alembic is imported here only when a migration has to run: a start that
finds the head revision does not pay for it.
"""

import fcntl
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, make_url, text

from app.errors import AppError
from app.store.engine import Database

MIGRATIONS = Path(__file__).resolve().parent.parent.parent / "migrations"
HEAD = "0009"
"""The newest revision; a test compares it with Alembic's own answer."""


class DatabaseTooNewError(AppError):
    """The database was written by a newer Docent."""

    default_code = "database_too_new"


def migrate(database: Database) -> None:
    """Upgrades to `HEAD` under a file lock, so that two starts at once don't race.

    Raises:
        DatabaseTooNewError: when the database's revision is unknown here. It is left untouched.
    """
    with open(database.path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if current_revision(database) != HEAD:
            database.writer_connection(_upgrade)


def is_there(url: str) -> bool:
    """Whether the database of an SQLAlchemy URL exists; asking makes none."""
    path = make_url(url).database
    return bool(path) and Path(path).is_file()


def current_revision(database: Database) -> str | None:
    """The database's revision, None for an empty one."""

    def read(connection: Connection) -> str | None:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()

    return database.writer_connection(read)


def is_compared(_obj: Any, name: str | None, kind: str, _reflected: bool, _compare_to: Any) -> bool:
    """Whether Alembic compares a table with the models: all but the full-text indexes' own."""
    return not (kind == "table" and name is not None and name.startswith(("chunks_fts", "chunks_grams")))


def _upgrade(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - 0.2 s that a start at the head revision need not pay
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util.exc import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise DatabaseTooNewError from error
