"""What was looked up, in the words that `start` and `tool` frames and pages show: a tool call, and what comes before
the first word: the search, the document that is read whole, the count. Pure.

`app.api.run_turn` and `app.web.tool_view` use it, so that a live line and a stored one say the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog import Catalog
from app.rag.whole_plan import SECTIONS
from app.render.names import plain_name

_WHOLE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class FirstLook:
    """The first line over an answer. `found` is what it says of the passages while nothing is cited yet, empty where
    the summary says all; `ms` is 0 where its time would say little; `scored` says whether a search ranked them."""

    name: str
    asked: str
    summary: str
    found: str = ""
    ms: int = 0
    status: str = "ok"
    scored: bool = False


def first_look(catalog: Catalog, numbers: Mapping[str, Any], sources: int | None) -> FirstLook | None:
    """What a turn looked at before its first word, from the numbers it keeps; None where nothing was looked up.

    Args:
        sources: The passages it was given, None where none was close.
    """
    ms = int(numbers.get("retrieval_ms") or 0)
    if whole := numbers.get("whole"):
        return _reading(catalog, whole, ms)
    if (counted := numbers.get("catalogue")) and counted["words"]:
        summary = catalog.t("whole.given_catalogue", n=int(counted["total"]), of=int(counted["of"]))
        return FirstLook("search", _quoted(str(counted["words"])), summary, summary, ms)
    if title := numbers.get("outline"):
        return FirstLook("read", plain_name(str(title)), catalog.t("whole.step_outline"), catalog.t("whole.given"), ms)
    if title := numbers.get("unreadable"):
        nothing = catalog.t("whole.given_unreadable")
        return FirstLook("read", plain_name(str(title)), nothing, nothing, ms, "error")
    if not (query := str(numbers.get("searched") or "")):
        return None
    if sources is None:
        return FirstLook("search", _quoted(query), catalog.t("chat.nothing_close"), "", ms, scored=True)
    given = int(numbers.get("given", sources))
    summary, found = catalog.t("chat.passages", n=given), catalog.t("chat.found_passages", n=given)
    return FirstLook("search", _quoted(query), summary, found, ms, scored=True)


def _reading(catalog: Catalog, whole: Mapping[str, Any], ms: int) -> FirstLook:
    title, given = plain_name(str(whole["title"])), catalog.t("whole.given")
    if "sections" not in whole:
        return FirstLook("read", title, catalog.t("whole.step_whole", n=int(whole["passages"])), given, ms)
    read, total = int(whole["read"]), int(whole["sections"])
    is_over = read + len(whole.get("failed") or ()) >= min(total, SECTIONS)
    summary = catalog.t("whole.given_sections", read=read, total=total)
    return FirstLook("read", title, summary, status="ok" if is_over else "start")


def _quoted(text: str) -> str:
    text = plain_name(text)
    return text if text[0] == text[-1] == '"' and len(text) > 1 else f"“{text}”"


def asked_for(catalog: Catalog, name: str, args: Mapping[str, Any]) -> str:
    """A call's arguments as words: `/library/plan.md:20–59`, `“derp” in /library *.md`."""
    first, count = _whole(args.get("offset")), _whole(args.get("limit"))
    first = first or min(count, 1)
    lines = f":{first}–{first + count - 1 if count else ''}" if first else ""
    path = str(args.get("path") or ("/" if name == "ls" else ""))
    where = " ".join(filter(None, (path + lines, str(args.get("glob") or ""))))
    what = args.get("pattern") or args.get("query")
    if not what:
        return plain_name(where)
    quoted, where = f"“{plain_name(str(what))}”", plain_name(where)
    return catalog.t("chat.tool_in", what=quoted, where=where) if where else quoted


def _whole(value: object) -> int:
    """A count of lines, which some models write as text; 0 for anything else."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return int(text) if _WHOLE.fullmatch(text) else 0
