"""Substrings and scripts without spaces: the trigram index.

Empty at first: passages that are there already are put in by the worker, in the background, so that a large library
does not have to wait for its next start.

Revision: 0004, after 0003.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.execute(
        "CREATE VIEW chunk_grams AS SELECT id, heading || char(10) || text || char(10) || char(10) AS text FROM chunks"
    )
    op.execute(
        "CREATE VIRTUAL TABLE chunks_grams USING fts5(text, content='chunk_grams', content_rowid='id', "
        "tokenize='trigram', detail=none)"
    )
    op.execute("CREATE VIRTUAL TABLE chunks_grams_terms USING fts5vocab('chunks_grams', 'row')")
    op.execute("CREATE VIRTUAL TABLE chunks_grams_places USING fts5vocab('chunks_grams', 'instance')")


def downgrade() -> None:
    """Back."""
    op.execute("DROP TABLE chunks_grams_places")
    op.execute("DROP TABLE chunks_grams_terms")
    op.execute("DROP TABLE chunks_grams")
    op.execute("DROP VIEW chunk_grams")
