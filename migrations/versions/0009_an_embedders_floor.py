"""What an embedder's unrelated texts have in common, measured once per generation.

Revision: 0009, after 0008.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.add_column("generations", sa.Column("floor", sa.Double(), nullable=True))
    op.add_column("generations", sa.Column("floor_rule", sa.String(length=20), nullable=True))


def downgrade() -> None:
    """Back."""
    op.drop_column("generations", "floor_rule")
    op.drop_column("generations", "floor")
