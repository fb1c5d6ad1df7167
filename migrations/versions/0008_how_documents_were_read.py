"""How documents were read: OCR, cuts, language.

Revision: 0008, after 0007.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.create_table(
        "readings",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("ocr", sa.String(length=10), nullable=True),
        sa.Column("cut", sa.Boolean(), nullable=True),
        sa.Column("language", sa.String(length=8), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_readings_document_id_documents"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_readings")),
    )
    op.create_table(
        "recognised_pages",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("lines", sa.JSON(), nullable=False),
        sa.Column("recognised_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_recognised_pages_document_id_documents"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", "page", name=op.f("pk_recognised_pages")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("recognised_pages")
    op.drop_table("readings")
