"""Alembic's entry: runs migrations on a connection handed in by `app.store.migrate`, or on DATABASE_URL by hand."""

from alembic import context
from sqlalchemy import create_engine

from app.settings import Settings
from app.store.migrate import is_compared
from app.store.models import Base

connection = context.config.attributes.get("connection")


def run(connection) -> None:
    """Migrates in one transaction; tables of the full-text index are none of Alembic's business."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_object=is_compared,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if connection is not None:
    run(connection)
else:
    with create_engine(Settings().database).begin() as own:
        run(own)
