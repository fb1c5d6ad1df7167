"""How documents were read: OCR, cuts, language.

Revision: 0008, after 0007.
"""

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""


def downgrade() -> None:
    """Back."""
