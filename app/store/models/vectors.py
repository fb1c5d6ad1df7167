"""Embedding generations and their vectors."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


def _only_one(state: str) -> Index:
    where = text(f"state = '{state}'")
    return Index(f"uq_generations_{state}", "state", unique=True, sqlite_where=where, postgresql_where=where)


class Generation(Base):
    """One way of embedding: model, dimension, normalisation, chunker. Vectors of two generations never mix."""

    __tablename__ = "generations"
    __table_args__ = (_only_one("active"), _only_one("building"))

    id: Mapped[int] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(String(256))
    dim: Mapped[int]
    normalised: Mapped[bool]
    chunker: Mapped[str] = mapped_column(String(40))
    state: Mapped[str] = mapped_column(String(10))
    """building, active, retired (kept, so that one can go back) or dropping; one at most is building, one active."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    base_url: Mapped[str | None] = mapped_column(Text)
    """Where its embedder answers; None for a built-in one, and where a Docent before this column did not note it."""
    api_key: Mapped[str | None] = mapped_column(Text)
    """The key that was typed for it; one from the environment is never stored."""
    auto_switch: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether it becomes the active one by itself once it is built."""
    paused_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    problem: Mapped[str | None] = mapped_column(String(40))
    """Why the build waits: an error's code."""
    built_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When every text had its vector for the first time."""
    compared: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    """`app.ingest.comparison.Comparison` as it was before the switch."""
    floor: Mapped[float | None]
    """The cosine that counts as 0; None while it is not measured, and for an embedder that names its own."""
    floor_rule: Mapped[str | None] = mapped_column(String(20))
    """By which rule it was measured (`app.search.floor.RULE`); None: it is due."""
    switched_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    retired_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Vector(Base):
    """The embedding of one distinct chunk text in one generation, whichever documents hold the text.

    Ids only grow and are never used twice (`sqlite_autoincrement`): a resident index asks for those above the last one
    it has seen, and so also finds what another process embedded.
    """

    __tablename__ = "vectors"
    __table_args__ = (
        UniqueConstraint("generation_id", "sha256"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id", ondelete="CASCADE"))
    sha256: Mapped[str] = mapped_column(String(64))
    embedding: Mapped[bytes] = mapped_column(LargeBinary)
    """`dim` little-endian float16 values."""
