"""Checks the migrations against the models: upgrade, compare, downgrade, upgrade again, on a fresh database."""

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from app.store.engine import Database
from app.store.migrate import HEAD, MIGRATIONS


def main() -> int:
    """Returns 1, with the difference printed, when schema and models have drifted apart."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    newest = ScriptDirectory.from_config(config).get_current_head()
    if newest != HEAD:
        print(f"app.store.migrate.HEAD is {HEAD}, the newest migration is {newest}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'drift.db'}")
        for step in ("upgrade", "check", "downgrade", "upgrade"):
            database.writer_connection(lambda connection, step=step: run(config, connection, step))
        database.close()
    print("the migrations match the models, both ways")
    return 0


def run(config: Config, connection: Connection, step: str) -> None:
    """One Alembic command on `connection`; after a downgrade nothing of ours may be left."""
    config.attributes["connection"] = connection
    if step == "upgrade":
        command.upgrade(config, "head")
    elif step == "check":
        command.check(config)
    else:
        command.downgrade(config, "base")
        left = set(inspect(connection).get_table_names()) - {"alembic_version"}
        if left:
            raise SystemExit(f"left after the downgrade: {sorted(left)}")


if __name__ == "__main__":
    sys.exit(main())
