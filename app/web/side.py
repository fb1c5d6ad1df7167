"""What the side bar shows on every page: counts, chats by day, and the footnote about library and model.

Read in one transaction with `side_bar`; called by `app.web.templating` for pages and by `app.web.chats` for its list.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from app.settings import Settings
from app.store import chats, collections, queries, readings
from app.store import settings as stored_settings
from app.store.chats import ChatRow
from app.store.engine import Session

GAPS_SHOWN = 99


@dataclass(frozen=True, slots=True)
class Connected:
    """The model that answers and its server (host and port), both None while none is connected."""

    model: str | None
    server: str | None


@dataclass(frozen=True, slots=True)
class SideBar:
    """`documents` stand in the library, `reads` of them hold text to answer from; `model` and `server` are those of
    `Connected`."""

    documents: int
    reads: int
    gaps: int
    chats: tuple[ChatRow, ...]
    model: str | None
    server: str | None


def side_bar(session: Session, settings: Settings, user_id: int) -> SideBar:
    """The side bar of `user_id`; `settings` is the environment's."""
    model = connected(stored_settings.effective(session, settings))
    held = sum(row.documents for row in collections.list_collections(session, user_id))
    return SideBar(
        documents=held,
        reads=held - readings.count_unread(session, user_id),
        gaps=len(queries.list_gaps(session, user_id, limit=GAPS_SHOWN)),
        chats=tuple(chats.list_chats(session, user_id)),
        model=model.model,
        server=model.server,
    )


def connected(settings: Settings) -> Connected:
    """What `settings`, the effective ones, say about the model."""
    base_url = settings.llm_base_url
    if not base_url:
        return Connected(None, None)
    return Connected(settings.llm_model or "", urlsplit(base_url).netloc.rpartition("@")[2])
