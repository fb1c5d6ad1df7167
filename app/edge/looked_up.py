"""What a tool call asks for, in the words that `tool` frames and pages show. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from app.catalog import Catalog
from app.render.names import plain_name

_WHOLE = re.compile(r"[0-9]{1,9}")


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
