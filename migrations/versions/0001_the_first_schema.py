"""The first schema: library, vectors, chats, settings, and the full-text index.

Revision: 0001, after None.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.create_table(
        "generations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=256), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("normalised", sa.Boolean(), nullable=False),
        sa.Column("chunker", sa.String(length=40), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generations")),
    )
    users = op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("username", sa.String(length=100), nullable=False),
        sa.Column("display_name", sa.String(length=200), nullable=False),
        sa.Column("password_hash", sa.String(length=300), nullable=True),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("disabled_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("username", name=op.f("uq_users_username")),
    )
    op.create_table(
        "chats",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("folder", sa.String(length=200), nullable=True),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("archived_at", sa.DateTime(), nullable=True),
        sa.Column("collection_filter", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_chats_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chats")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("chats", schema=None) as batch_op:
        batch_op.create_index(
            "ix_chats_user_updated", ["user_id", "updated_at"], unique=False
        )

    collections = op.create_table(
        "collections",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("slug", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("root", sa.Text(), nullable=True),
        sa.Column("scanned_at", sa.DateTime(), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["users.id"],
            name=op.f("fk_collections_owner_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collections")),
        sa.UniqueConstraint("slug", name=op.f("uq_collections_slug")),
    )
    with op.batch_alter_table("collections", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_collections_owner_id"), ["owner_id"], unique=False
        )

    op.create_table(
        "settings",
        sa.Column("key", sa.String(length=100), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("updated_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["updated_by"],
            ["users.id"],
            name=op.f("fk_settings_updated_by_users"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings")),
    )
    op.create_table(
        "vectors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation_id"],
            ["generations.id"],
            name=op.f("fk_vectors_generation_id_generations"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vectors")),
        sa.UniqueConstraint(
            "generation_id", "sha256", name=op.f("uq_vectors_generation_id_sha256")
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "collection_members",
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("can_write", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_collection_members_collection_id_collections"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_collection_members_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "collection_id", "user_id", name=op.f("pk_collection_members")
        ),
    )
    with op.batch_alter_table("collection_members", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_collection_members_user_id"), ["user_id"], unique=False
        )

    op.create_table(
        "documents",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(length=10), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("mime", sa.String(length=100), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=True),
        sa.Column("encoding", sa.String(length=40), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("text_yield", sa.JSON(), nullable=True),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("error", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("indexed_at", sa.DateTime(), nullable=True),
        sa.Column("deleted_at", sa.DateTime(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_documents_collection_id_collections"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index("ix_documents_sha256", ["sha256"], unique=False)
        batch_op.create_index("ix_documents_status", ["status"], unique=False)
        batch_op.create_index(
            "uq_documents_live_path",
            ["collection_id", "source", "path"],
            unique=True,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )

    op.create_table(
        "messages",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chat_id", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("turn_id", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("thinking", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("error_code", sa.String(length=40), nullable=True),
        sa.Column("sources", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chat_id"],
            ["chats.id"],
            name=op.f("fk_messages_chat_id_chats"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"],
            ["messages.id"],
            name=op.f("fk_messages_parent_id_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.create_index("ix_messages_chat", ["chat_id", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_messages_parent_id"), ["parent_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_messages_turn_id"), ["turn_id"], unique=False
        )

    op.create_table(
        "turns",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("chat_id", sa.Integer(), nullable=True),
        sa.Column("client_key", sa.String(length=100), nullable=True),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.Column("mode", sa.String(length=10), nullable=True),
        sa.Column("outcome", sa.String(length=12), nullable=True),
        sa.Column("error_code", sa.String(length=40), nullable=True),
        sa.Column("numbers", sa.JSON(), nullable=True),
        sa.Column("prompt", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["chat_id"],
            ["chats.id"],
            name=op.f("fk_turns_chat_id_chats"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_turns_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        sa.UniqueConstraint(
            "user_id", "client_key", name=op.f("uq_turns_user_id_client_key")
        ),
    )
    with op.batch_alter_table("turns", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_turns_chat_id"), ["chat_id"], unique=False)
        batch_op.create_index("ix_turns_state", ["state"], unique=False)
        batch_op.create_index(
            "uq_turns_running_chat",
            ["chat_id"],
            unique=True,
            sqlite_where=sa.text("state = 'running'"),
            postgresql_where=sa.text("state = 'running'"),
        )

    op.create_table(
        "chunks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("line_start", sa.Integer(), nullable=False),
        sa.Column("line_end", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_chunks_document_id_documents"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint(
            "document_id", "ordinal", name=op.f("uq_chunks_document_id_ordinal")
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("chunks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_chunks_sha256"), ["sha256"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=True),
        sa.Column("dedup_key", sa.String(length=200), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(), nullable=True),
        sa.Column("lease_until", sa.DateTime(), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_jobs_document_id_documents"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_jobs_document_id"), ["document_id"], unique=False
        )
        batch_op.create_index(
            "ix_jobs_state_kind", ["state", "kind", "id"], unique=False
        )
        batch_op.create_index(
            "uq_jobs_live_dedup_key",
            ["dedup_key"],
            unique=True,
            sqlite_where=sa.text("state IN ('queued', 'running')"),
            postgresql_where=sa.text("state IN ('queued', 'running')"),
        )

    op.create_table(
        "query_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("chat_id", sa.Integer(), nullable=True),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("top_score", sa.Float(), nullable=False),
        sa.Column("chunk_ids", sa.JSON(), nullable=False),
        sa.Column("read_docs", sa.JSON(), nullable=False),
        sa.Column("tool_calls", sa.Integer(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=256), nullable=False),
        sa.Column("thinking_chars", sa.Integer(), nullable=False),
        sa.Column("answer_chars", sa.Integer(), nullable=False),
        sa.Column("first_ms", sa.Integer(), nullable=False),
        sa.Column("total_ms", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("scaffold_stripped", sa.Integer(), nullable=False),
        sa.Column("recovered", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chat_id"],
            ["chats.id"],
            name=op.f("fk_query_log_chat_id_chats"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_query_log_message_id_messages"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_query_log_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_query_log")),
    )
    with op.batch_alter_table("query_log", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_query_log_chat_id"), ["chat_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_query_log_message_id"), ["message_id"], unique=False
        )
        batch_op.create_index(
            "ix_query_log_user_created", ["user_id", "created_at"], unique=False
        )
    op.execute(
        "CREATE VIEW chunk_search AS SELECT chunks.id AS id, documents.path AS name, documents.title AS title, "
        "chunks.heading AS heading, chunks.text AS text FROM chunks JOIN documents ON documents.id = chunks.document_id"
    )
    op.execute(
        "CREATE VIRTUAL TABLE chunks_fts USING fts5(name, title, heading, text, content='chunk_search', "
        "content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')"
    )
    op.execute(
        "CREATE VIRTUAL TABLE chunks_fts_terms USING fts5vocab('chunks_fts', 'row')"
    )
    now = datetime.now(UTC).replace(tzinfo=None)
    op.bulk_insert(
        users,
        [
            {
                "id": 1,
                "username": "local",
                "display_name": "Local",
                "role": "admin",
                "created_at": now,
            }
        ],
    )
    op.bulk_insert(
        collections,
        [
            {
                "id": 1,
                "owner_id": 1,
                "name": "Library",
                "slug": "library",
                "kind": "library",
                "created_at": now,
            }
        ],
    )


def downgrade() -> None:
    """Back to the schema before."""
    op.execute("DROP TABLE chunks_fts_terms")
    op.execute("DROP TABLE chunks_fts")
    op.execute("DROP VIEW chunk_search")
    with op.batch_alter_table("query_log", schema=None) as batch_op:
        batch_op.drop_index("ix_query_log_user_created")
        batch_op.drop_index(batch_op.f("ix_query_log_message_id"))
        batch_op.drop_index(batch_op.f("ix_query_log_chat_id"))

    op.drop_table("query_log")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_jobs_live_dedup_key",
            sqlite_where=sa.text("state IN ('queued', 'running')"),
            postgresql_where=sa.text("state IN ('queued', 'running')"),
        )
        batch_op.drop_index("ix_jobs_state_kind")
        batch_op.drop_index(batch_op.f("ix_jobs_document_id"))

    op.drop_table("jobs")
    with op.batch_alter_table("chunks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_chunks_sha256"))

    op.drop_table("chunks")
    with op.batch_alter_table("turns", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_turns_running_chat",
            sqlite_where=sa.text("state = 'running'"),
            postgresql_where=sa.text("state = 'running'"),
        )
        batch_op.drop_index("ix_turns_state")
        batch_op.drop_index(batch_op.f("ix_turns_chat_id"))

    op.drop_table("turns")
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_messages_turn_id"))
        batch_op.drop_index(batch_op.f("ix_messages_parent_id"))
        batch_op.drop_index("ix_messages_chat")

    op.drop_table("messages")
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_documents_live_path",
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )
        batch_op.drop_index("ix_documents_status")
        batch_op.drop_index("ix_documents_sha256")

    op.drop_table("documents")
    with op.batch_alter_table("collection_members", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_collection_members_user_id"))

    op.drop_table("collection_members")
    op.drop_table("vectors")
    op.drop_table("settings")
    with op.batch_alter_table("collections", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_collections_owner_id"))

    op.drop_table("collections")
    with op.batch_alter_table("chats", schema=None) as batch_op:
        batch_op.drop_index("ix_chats_user_updated")

    op.drop_table("chats")
    op.drop_table("users")
    op.drop_table("generations")
