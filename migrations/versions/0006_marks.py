"""What readers said of answers, and questions kept for the evaluation.

Revision: 0006, after 0005.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.create_table(
        "answer_marks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("turn_id", sa.String(length=32), nullable=False),
        sa.Column("verdict", sa.String(length=12), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("changed_at", sa.DateTime(), nullable=False),
        _belongs_to("answer_marks", "user_id", "users", "CASCADE"),
        _belongs_to("answer_marks", "turn_id", "turns", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answer_marks")),
        sa.UniqueConstraint("user_id", "turn_id", name=op.f("uq_answer_marks_user_id_turn_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_answer_marks_turn_id"), "answer_marks", ["turn_id"])
    op.create_table(
        "eval_questions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.Column("passages", sa.JSON(), nullable=False),
        sa.Column("needs_all", sa.Boolean(), nullable=False),
        sa.Column("by_mark", sa.Boolean(), nullable=False),
        sa.Column("removed_at", sa.DateTime(), nullable=True),
        sa.Column("turn_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        _belongs_to("eval_questions", "user_id", "users", "CASCADE"),
        _belongs_to("eval_questions", "turn_id", "turns", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_questions")),
        sa.UniqueConstraint("user_id", "key", name=op.f("uq_eval_questions_user_id_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_eval_questions_turn_id"), "eval_questions", ["turn_id"])
    op.create_table(
        "eval_runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("error_code", sa.String(length=40), nullable=True),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=True),
        _belongs_to("eval_runs", "user_id", "users", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_eval_runs_user", "eval_runs", ["user_id", "id"])
    running = sa.text("state = 'running'")
    op.create_index(
        "uq_eval_runs_running_user",
        "eval_runs",
        ["user_id"],
        unique=True,
        sqlite_where=running,
        postgresql_where=running,
    )


def downgrade() -> None:
    """Back."""
    for table in ("eval_runs", "eval_questions", "answer_marks"):
        op.drop_table(table)


def _belongs_to(table: str, column: str, target: str, on_delete: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{target}")
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete=on_delete)
