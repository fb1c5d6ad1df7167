"""What pages say of a turn that read a whole document or counted in the catalogue, from the numbers it kept. Pure.

`None` and empty mean that the turn was an ordinary one. For `app.web.chat_view` and `app.web.receipt_view`; the turn
itself is `app.api.turn_whole`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.catalog import Catalog

Numbers = Mapping[str, Any]

SEARCH_PAGE = "/search"
"""Where a search over the library is shown; it takes the words as `q`."""


@dataclass(frozen=True, slots=True)
class MoreLink:
    """Where the rest of an answer is, and what the link says."""

    href: str
    label: str


def given_words(catalog: Catalog, numbers: Numbers) -> str | None:
    """What the answer was made from, for the line under the question."""
    if whole := numbers.get("whole"):
        if "sections" not in whole:
            return catalog.t("whole.given")
        return catalog.t("whole.given_sections", read=int(whole["read"]), total=int(whole["sections"]))
    if found := numbers.get("catalogue"):
        return catalog.t("whole.given_catalogue", n=int(found["total"]), of=int(found["of"])) if found["words"] else ""
    if numbers.get("outline"):
        return catalog.t("whole.given")
    return catalog.t("whole.given_unreadable") if numbers.get("unreadable") else None


def part_notices(catalog: Catalog, numbers: Numbers) -> list[str]:
    """What of the document was not read."""
    whole: Numbers = numbers.get("whole") or {}
    total, read, failed = int(whole.get("sections") or 0), int(whole.get("read") or 0), len(whole.get("failed") or ())
    notices: list[str] = []
    if total > read + failed:
        notices.append(catalog.t("whole.part", read=read + failed, total=total))
    if failed:
        notices.append(catalog.t("whole.unread", n=failed, total=read + failed))
    return notices


def more_link(catalog: Catalog, numbers: Numbers) -> MoreLink | None:
    """From a count to the documents themselves."""
    found = numbers.get("catalogue")
    if not found or not found["total"]:
        return None
    if not found["words"]:
        return MoreLink("/library", catalog.t("whole.all_show"))
    address = f"{SEARCH_PAGE}?{urlencode({'q': found['words']})}"
    return MoreLink(address, catalog.t("whole.mentions_all", n=int(found["total"])))


def receipt_words(catalog: Catalog, numbers: Numbers) -> str | None:
    """What was read or counted, for the receipt."""
    if whole := numbers.get("whole"):
        title = str(whole["title"])
        if "sections" not in whole:
            return catalog.t("whole.receipt_at_once", title=title)
        return catalog.t("whole.receipt_sections", read=int(whole["read"]), total=int(whole["sections"]), title=title)
    if found := numbers.get("catalogue"):
        return catalog.t("whole.receipt_catalogue", n=int(found["total"]), of=int(found["of"]))
    if title := numbers.get("outline"):
        return catalog.t("whole.receipt_outline", title=str(title))
    return catalog.t("whole.receipt_unreadable") if numbers.get("unreadable") else None
