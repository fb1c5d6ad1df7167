"""The loop guard's log: decisions, scanned requests per day, what was lost, runs and environments.

No conversation text: keys are cut HMACs, the model's name is the one string a client may have chosen.
"""

from datetime import datetime

from sqlalchemy import BigInteger, Float, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class LoopGuardEnv(Base):
    """What a decision was made with. `env_id` is a hash of all the other columns; NULL means not known."""

    __tablename__ = "loop_guard_env"

    env_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    app_version: Mapped[str] = mapped_column(String(40))
    git_sha: Mapped[str | None] = mapped_column(String(64))
    backend: Mapped[str | None] = mapped_column(String(100))
    backend_build: Mapped[str | None] = mapped_column(String(200))
    model_digest: Mapped[str | None] = mapped_column(String(200))
    quant: Mapped[str | None] = mapped_column(String(40))
    template_hash: Mapped[str | None] = mapped_column(String(64))
    rules_version: Mapped[str | None] = mapped_column(String(40))
    strikes: Mapped[int | None]
    observation: Mapped[int | None]
    stagnation: Mapped[int | None]


class LoopGuardTrip(Base):
    """One decision. Its last five columns are filled in later, where what became of it is known."""

    __tablename__ = "loop_guard_trips"
    __table_args__ = (Index("ix_loop_guard_trips_recorded_at", "recorded_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    recorded_at: Mapped[int] = mapped_column(BigInteger)
    """Seconds since the epoch."""
    path: Mapped[str] = mapped_column(String(10))
    """agent, proxy."""
    model_name: Mapped[str] = mapped_column(String(256))
    app_version: Mapped[str] = mapped_column(String(40))
    mode: Mapped[str] = mapped_column(String(10))
    """note, refuse."""
    detector: Mapped[str] = mapped_column(String(12))
    """loop, stagnation, requery, cycle."""
    action: Mapped[str] = mapped_column(String(10))
    """note, final, abort, refuse, observed."""
    signature_hash: Mapped[str | None] = mapped_column(String(16))
    session_hash: Mapped[str | None] = mapped_column(String(16))
    repeat_count: Mapped[int | None] = mapped_column(BigInteger)
    threshold: Mapped[int | None] = mapped_column(BigInteger)
    env_id: Mapped[str] = mapped_column(ForeignKey("loop_guard_env.env_id"))
    outcome: Mapped[str | None] = mapped_column(String(60))
    """delivered, or not_sent:<why>."""
    next_turn: Mapped[str | None] = mapped_column(String(10))
    """changed, same, none."""
    prompt_tokens: Mapped[int | None] = mapped_column(BigInteger)
    completion_tokens: Mapped[int | None] = mapped_column(BigInteger)
    seconds: Mapped[float | None] = mapped_column(Float)


class LoopGuardScan(Base):
    """How many requests were scanned on one UTC day under one key."""

    __tablename__ = "loop_guard_scans"

    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Days since the epoch."""
    path: Mapped[str] = mapped_column(String(10), primary_key=True)
    model_name: Mapped[str] = mapped_column(String(256), primary_key=True)
    app_version: Mapped[str] = mapped_column(String(40), primary_key=True)
    mode: Mapped[str] = mapped_column(String(10), primary_key=True)
    env_id: Mapped[str] = mapped_column(ForeignKey("loop_guard_env.env_id"), primary_key=True)
    scanned: Mapped[int] = mapped_column(BigInteger)


class LoopGuardLoss(Base):
    """What one run could not keep on one day, by reason; NULL where nobody can know how much (unclean_exit)."""

    __tablename__ = "loop_guard_losses"

    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    run_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    reason: Mapped[str] = mapped_column(String(20), primary_key=True)
    trips: Mapped[int | None] = mapped_column(BigInteger)
    scans: Mapped[int | None] = mapped_column(BigInteger)


class LoopGuardRun(Base):
    """One life of the writer. `clean_exit` is NULL while it may still live, 0 once a later start found it dead."""

    __tablename__ = "loop_guard_runs"

    run_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_flush_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    clean_exit: Mapped[bool | None]
