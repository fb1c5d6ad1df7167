"""Documents fetched from an address.

Revision: 0005, after 0004.
"""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""


def downgrade() -> None:
    """Back."""
