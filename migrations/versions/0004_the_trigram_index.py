"""Substrings and scripts without spaces: the trigram index.

Revision: 0004, after 0003.
"""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""


def downgrade() -> None:
    """Back."""
