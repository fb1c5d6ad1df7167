"""What the reader is told while a document is read section by section: a few words, never the document's.

What the model is told is `app.rag.whole_prompts`'.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.catalog import Catalog


@dataclass(frozen=True, slots=True)
class WholeTexts:
    """Summaries and notices, by what they count."""

    section: Callable[[int, int], str]
    """Number, total; while it is read."""
    section_read: Callable[[int, int, int], str]
    """Number, total, lines."""
    section_failed: Callable[[int, int], str]
    """Number, total."""
    joining: Callable[[int, int], str]
    """First and last section whose notes become one."""
    unread: Callable[[int, int], str]
    """How many sections of how many could not be read."""
    part: Callable[[int, int], str]
    """The first sections of how many were read."""


def whole_texts(catalog: Catalog) -> WholeTexts:
    """The texts of `frontend/messages/<language>/whole.json`."""
    return WholeTexts(
        section=lambda n, total: catalog.t("whole.section", number=n, total=total),
        section_read=lambda n, total, lines: catalog.t("whole.section_read", number=n, total=total, n=lines),
        section_failed=lambda n, total: catalog.t("whole.section_failed", number=n, total=total),
        joining=lambda first, last: catalog.t("whole.joining", first=first, last=last),
        unread=lambda failed, total: catalog.t("whole.unread", n=failed, total=total),
        part=lambda read, total: catalog.t("whole.part", read=read, total=total),
    )
