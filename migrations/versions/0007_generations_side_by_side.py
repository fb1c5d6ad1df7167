"""Embedding generations side by side: where an embedder is found, how far a build is, what was compared before a switch.

Revision: 0007, after 0006.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.add_column("generations", sa.Column("base_url", sa.Text(), nullable=True))
    op.add_column("generations", sa.Column("api_key", sa.Text(), nullable=True))
    op.add_column("generations", sa.Column("auto_switch", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("generations", sa.Column("paused_at", sa.DateTime(), nullable=True))
    op.add_column("generations", sa.Column("problem", sa.String(length=40), nullable=True))
    op.add_column("generations", sa.Column("built_at", sa.DateTime(), nullable=True))
    op.add_column("generations", sa.Column("compared", sa.JSON(), nullable=True))
    op.add_column("generations", sa.Column("switched_at", sa.DateTime(), nullable=True))
    op.add_column("generations", sa.Column("retired_at", sa.DateTime(), nullable=True))
    for state in ("active", "building"):
        where = sa.text(f"state = '{state}'")
        op.create_index(
            f"uq_generations_{state}", "generations", ["state"], unique=True, sqlite_where=where, postgresql_where=where
        )


def downgrade() -> None:
    """Back."""
    for state in ("building", "active"):
        op.drop_index(f"uq_generations_{state}", table_name="generations")
    names = ("retired_at", "switched_at", "compared", "built_at", "problem", "paused_at", "auto_switch", "api_key")
    for name in (*names, "base_url"):
        op.drop_column("generations", name)
