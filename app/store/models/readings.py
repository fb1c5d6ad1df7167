"""How documents were read: what was recognised in pictures of their pages, what was left out, which language it is."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class Reading(Base):
    """Facts of one document beside its row: `documents` ends with the long text, behind which no column may stand."""

    __tablename__ = "readings"

    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    ocr: Mapped[str | None] = mapped_column(String(10))
    """`asked`: recognising text in pictures of pages is to be done or going on; `done`; `failed`."""
    cut: Mapped[bool | None]
    """Whether the end of a long table was left out."""
    language: Mapped[str | None] = mapped_column(String(8))
    """What the text is mostly written in, as ISO 639-1; None where it could not be told."""


class RecognisedPage(Base):
    """The text of one page's picture, of the file with this hash; kept so that a page is recognised once."""

    __tablename__ = "recognised_pages"

    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    page: Mapped[int] = mapped_column(primary_key=True)
    """From 0."""
    sha256: Mapped[str] = mapped_column(String(64))
    lines: Mapped[dict[str, Any]] = mapped_column(JSON)
    """As `app.ingest.extract.wire.pack_lines` has them; without lines for a page that holds no words."""
    recognised_at: Mapped[datetime] = mapped_column(UtcDateTime)
