"""Watched folders: patterns, how they are watched, what changed last, being removed.

Revision: 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.add_column("collections", sa.Column("include", sa.JSON(), nullable=True))
    op.add_column("collections", sa.Column("exclude", sa.JSON(), nullable=True))
    op.add_column("collections", sa.Column("watch", sa.String(length=20), nullable=True))
    op.add_column("collections", sa.Column("changed_at", sa.DateTime(), nullable=True))
    op.add_column("collections", sa.Column("change", sa.JSON(), nullable=True))
    op.add_column("collections", sa.Column("removing_at", sa.DateTime(), nullable=True))


def downgrade() -> None:
    """Back."""
    for name in ("removing_at", "change", "changed_at", "watch", "exclude", "include"):
        op.drop_column("collections", name)
