"""Embedding generations: what was compared before a switch.

Revision: 0007, after 0006.
"""

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""


def downgrade() -> None:
    """Back."""
