"""The message catalog: every string a page or an error shows, by key; numbers, sizes and dates too.

Files are `frontend/messages/<language>/<area>.json`, one flat object each; a key is `<area>.<name>`. English is the
only language now. Owns lookup and formatting; who asks for which key belongs to pages and edges.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

MESSAGES = Path(__file__).resolve().parent.parent / "frontend" / "messages"


class Catalog:
    """One language's messages.

    Raises:
        KeyError: from `t`, for a key no file holds; a test walks every template so that none is reached at run time.
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        self._messages = dict(messages)

    def t(self, key: str, /, **params: object) -> str:
        """The message of `key` with its `{placeholders}` filled by plain replacement (no format language).

        A message may hold two forms as `one|many`, chosen by the parameter `n`: "{n} passage|{n} passages".
        """
        message = self._messages[key]
        if "|" in message and "n" in params:
            one, many = message.split("|", 1)
            message = one if params["n"] == 1 else many
        for name, value in params.items():
            text = self.number(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
            message = message.replace("{" + name + "}", text)
        return message

    def has(self, key: str) -> bool:
        """Whether `key` exists."""
        return key in self._messages

    def area(self, name: str) -> dict[str, str]:
        """All messages of one area, keys without the area: what a script of that page is given as JSON."""
        prefix = name + "."
        return {key.removeprefix(prefix): text for key, text in self._messages.items() if key.startswith(prefix)}

    def number(self, value: int | float) -> str:
        """8212 → "8,212"; 0.8123 → "0.81"."""
        return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"

    def size(self, size: int) -> str:
        """Bytes in decimal units as file managers show them: 48 kB, 1.9 MB."""
        if size < 1000:
            return f"{size} B"
        amount, unit = size / 1000, "kB"
        for next_unit in ("MB", "GB", "TB"):
            if amount < 999.5:
                break
            amount, unit = amount / 1000, next_unit
        return f"{amount:.1f} {unit}" if amount < 9.95 and unit != "kB" else f"{amount:.0f} {unit}"

    def seconds(self, ms: int) -> str:
        """A duration: 38 ms, 9.4 s, 2 min 5 s."""
        if ms < 1000:
            return f"{ms} ms"
        if ms < 60_000:
            return f"{ms / 1000:.1f} s"
        return f"{ms // 60_000} min {ms % 60_000 // 1000} s"

    def time_of_day(self, moment: datetime, zone: ZoneInfo | None = None) -> str:
        """14:02, in `zone` or the machine's own."""
        return self._local(moment, zone).strftime("%H:%M")

    def day(self, moment: datetime, now: datetime, zone: ZoneInfo | None = None) -> str:
        """ "Today", "Yesterday", "Last week" (2 to 7 days back), else "November 2026"."""
        local, today = self._local(moment, zone), self._local(now, zone)
        days = (today.date() - local.date()).days
        if days <= 0:
            return self.t("dates.today")
        if days == 1:
            return self.t("dates.yesterday")
        if days <= 7:
            return self.t("dates.last_week")
        return f"{self.t(f'dates.month_{local.month}')} {local.year}"

    def when(self, moment: datetime, now: datetime, zone: ZoneInfo | None = None) -> str:
        """Short: 14:05 today, "yesterday", then "18 Nov", with the year once it is another one."""
        local, today = self._local(moment, zone), self._local(now, zone)
        days = (today.date() - local.date()).days
        if days <= 0:
            return local.strftime("%H:%M")
        if days == 1:
            return self.t("dates.yesterday_short")
        month = self.t(f"dates.month_{local.month}")[:3]
        return f"{local.day} {month}" if local.year == today.year else f"{local.day} {month} {local.year}"

    @staticmethod
    def _local(moment: datetime, zone: ZoneInfo | None) -> datetime:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(zone)


@cache
def load_catalog(language: str = "en") -> Catalog:
    """The catalog of `language`, read once per process from `frontend/messages/<language>/`."""
    messages: dict[str, str] = {}
    for path in sorted((MESSAGES / language).glob("*.json")):
        for key, text in json.loads(path.read_text(encoding="utf-8")).items():
            messages[f"{path.stem}.{key}"] = text
    return Catalog(messages)
