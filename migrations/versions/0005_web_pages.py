"""Documents fetched from an address.

Revision: 0005, after 0004.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.create_table(
        "web_pages",
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("final_url", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("fetched_at", sa.DateTime(), nullable=True),
        sa.Column("checked_at", sa.DateTime(), nullable=True),
        sa.Column("refresh", sa.String(length=10), nullable=False),
        sa.Column("next_check_at", sa.DateTime(), nullable=True),
        sa.Column("gone_at", sa.DateTime(), nullable=True),
        sa.Column("error", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_web_pages_document_id_documents"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_web_pages")),
    )
    op.create_index(op.f("ix_web_pages_next_check_at"), "web_pages", ["next_check_at"])


def downgrade() -> None:
    """Back."""
    op.drop_index(op.f("ix_web_pages_next_check_at"), table_name="web_pages")
    op.drop_table("web_pages")
