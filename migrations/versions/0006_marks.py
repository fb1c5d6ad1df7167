"""What readers said of answers, and questions kept for the evaluation.

Revision: 0006, after 0005.
"""

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""


def downgrade() -> None:
    """Back."""
