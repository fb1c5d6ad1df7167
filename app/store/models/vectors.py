"""Embedding generations and their vectors."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class Generation(Base):
    """One way of embedding: model, dimension, normalisation, chunker. Vectors of two generations never mix."""

    __tablename__ = "generations"

    id: Mapped[int] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(String(256))
    dim: Mapped[int]
    normalised: Mapped[bool]
    chunker: Mapped[str] = mapped_column(String(40))
    state: Mapped[str] = mapped_column(String(10))
    """building, active or retired; at most one is active."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


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
