"""The loop guard's log: environments, trips, scans, losses, runs.

Revision: 0002, after 0001.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To the new schema."""
    op.create_table(
        "loop_guard_env",
        sa.Column("env_id", sa.String(length=16), nullable=False),
        sa.Column("app_version", sa.String(length=40), nullable=False),
        sa.Column("git_sha", sa.String(length=64), nullable=True),
        sa.Column("backend", sa.String(length=100), nullable=True),
        sa.Column("backend_build", sa.String(length=200), nullable=True),
        sa.Column("model_digest", sa.String(length=200), nullable=True),
        sa.Column("quant", sa.String(length=40), nullable=True),
        sa.Column("template_hash", sa.String(length=64), nullable=True),
        sa.Column("rules_version", sa.String(length=40), nullable=True),
        sa.Column("strikes", sa.Integer(), nullable=True),
        sa.Column("observation", sa.Integer(), nullable=True),
        sa.Column("stagnation", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("env_id", name=op.f("pk_loop_guard_env")),
    )
    op.create_table(
        "loop_guard_trips",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.String(length=10), nullable=False),
        sa.Column("model_name", sa.String(length=256), nullable=False),
        sa.Column("app_version", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("detector", sa.String(length=12), nullable=False),
        sa.Column("action", sa.String(length=10), nullable=False),
        sa.Column("signature_hash", sa.String(length=16), nullable=True),
        sa.Column("session_hash", sa.String(length=16), nullable=True),
        sa.Column("repeat_count", sa.BigInteger(), nullable=True),
        sa.Column("threshold", sa.BigInteger(), nullable=True),
        sa.Column("env_id", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=60), nullable=True),
        sa.Column("next_turn", sa.String(length=10), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["env_id"],
            ["loop_guard_env.env_id"],
            name=op.f("fk_loop_guard_trips_env_id_loop_guard_env"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_loop_guard_trips")),
    )
    with op.batch_alter_table("loop_guard_trips", schema=None) as batch_op:
        batch_op.create_index("ix_loop_guard_trips_recorded_at", ["recorded_at"], unique=False)

    op.create_table(
        "loop_guard_scans",
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("path", sa.String(length=10), nullable=False),
        sa.Column("model_name", sa.String(length=256), nullable=False),
        sa.Column("app_version", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("env_id", sa.String(length=16), nullable=False),
        sa.Column("scanned", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["env_id"],
            ["loop_guard_env.env_id"],
            name=op.f("fk_loop_guard_scans_env_id_loop_guard_env"),
        ),
        sa.PrimaryKeyConstraint(
            "day", "path", "model_name", "app_version", "mode", "env_id", name=op.f("pk_loop_guard_scans")
        ),
    )
    op.create_table(
        "loop_guard_losses",
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("trips", sa.BigInteger(), nullable=True),
        sa.Column("scans", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("day", "run_id", "reason", name=op.f("pk_loop_guard_losses")),
    )
    op.create_table(
        "loop_guard_runs",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("last_flush_at", sa.DateTime(), nullable=True),
        sa.Column("clean_exit", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_loop_guard_runs")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("loop_guard_runs")
    op.drop_table("loop_guard_losses")
    op.drop_table("loop_guard_scans")
    with op.batch_alter_table("loop_guard_trips", schema=None) as batch_op:
        batch_op.drop_index("ix_loop_guard_trips_recorded_at")

    op.drop_table("loop_guard_trips")
    op.drop_table("loop_guard_env")
