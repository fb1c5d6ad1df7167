"""Where documents that were fetched come from, and what the server said of them."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.models.base import Base, UtcDateTime


class WebPage(Base):
    """The address of one document of source `url`. Its bytes lie where an upload's do."""

    __tablename__ = "web_pages"

    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    """As it is asked for."""
    final_url: Mapped[str | None] = mapped_column(Text)
    """Where redirects led the last time bytes came."""
    etag: Mapped[str | None] = mapped_column(Text)
    last_modified: Mapped[str | None] = mapped_column(Text)
    """What the server said of these bytes, to be sent back as it came."""
    fetched_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the bytes that are here came."""
    checked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the server was last asked, and told whether they are still the same."""
    refresh: Mapped[str] = mapped_column(String(10))
    """How often it is asked without a person's doing: `off`, `daily` or `weekly`."""
    next_check_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    gone_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when the server says that there is no such page; what is here is kept."""
    error: Mapped[str | None] = mapped_column(String(40))
    """Why the last try failed, one of `app.ingest.fetch_errors.FetchReason`; None when it did not."""
