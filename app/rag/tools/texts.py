"""What the reader is told of a tool call: a few words, never a document's text.

What the model is told stands with each tool; it is English, like every prompt.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.catalog import Catalog


@dataclass(frozen=True, slots=True)
class ToolTexts:
    """The summaries of results. `say` takes a name of tools.json without numbers; the others take what they count."""

    say: Callable[[str], str]
    lines: Callable[[int], str]
    line_range: Callable[[int, int, int], str]
    """First, last, total."""
    entries: Callable[[int], str]
    files: Callable[[int], str]
    passages: Callable[[int], str]
    matches: Callable[[int, int], str]
    """Matching lines, files that hold them."""
    matches_part: Callable[[str, int, int], str]
    """What was found, files searched, files there are."""


def tool_texts(catalog: Catalog) -> ToolTexts:
    """The texts of `frontend/messages/<language>/tools.json`."""

    def counted(key: str) -> Callable[[int], str]:
        return lambda n: catalog.t(f"tools.{key}", n=n)

    files = counted("files")
    return ToolTexts(
        say=lambda name: catalog.t(f"tools.{name}"),
        lines=counted("lines"),
        line_range=lambda first, last, total: catalog.t("tools.line_range", first=first, last=last, total=total),
        entries=counted("entries"),
        files=files,
        passages=counted("passages"),
        matches=lambda n, among: catalog.t("tools.matches", n=n, files=files(among)),
        matches_part=lambda matches, looked, total: catalog.t(
            "tools.matches_part", matches=matches, looked=looked, total=total
        ),
    )
