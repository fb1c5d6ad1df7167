"""What a page shows of the names in a question: chips beside the question, and sentences about names that led nowhere.

Pure: from what the turn stored (`app.api.asked.asked_facts`). For `app.web.chat_view` and `app.web.receipt_view`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog import Catalog
from app.render.names import shown_name


@dataclass(frozen=True, slots=True)
class ChipView:
    """One filter that held: `label` in words, `title` says more where there is more to say."""

    label: str
    title: str


def chip_views(catalog: Catalog, numbers: Mapping[str, Any]) -> list[ChipView]:
    """What the question was asked of, in the order it was written."""
    return [
        ChipView(shown_name(str(row["label"])), catalog.t("chat.chip_carried") if row.get("carried") else "")
        for row in numbers.get("chips") or ()
    ]


def asked_of(catalog: Catalog, numbers: Mapping[str, Any]) -> str:
    """The same on one line; empty where nothing was named."""
    return " · ".join(
        f"{chip.label} ({chip.title})" if chip.title else chip.label for chip in chip_views(catalog, numbers)
    )


def remark_notices(catalog: Catalog, numbers: Mapping[str, Any]) -> list[str]:
    """What the stream said about names that led nowhere, or not where they were meant to; not what the answer says
    itself: why the one document that is meant can't be read."""
    said = ("chip_failed", "chip_waiting") if numbers.get("unreadable") else ()
    return [
        catalog.t(f"notices.{row['code']}", name=row["name"], n=row["n"])
        for row in numbers.get("remarks") or ()
        if catalog.has(f"notices.{row['code']}") and row["code"] not in said
    ]
