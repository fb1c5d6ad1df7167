"""docs/operating.md explains every field of the per-turn line, in the line's order."""

import re

from app.rag.turn import TurnStats
from app.settings import ROOT


def test_every_field_of_the_turn_line_is_explained_in_order() -> None:
    """A new field without a sentence, or a sentence without a field, fails."""
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    section = page.split("## One line per turn")[1].split("\n## ")[0]
    explained = re.findall(r"^\| ([a-z_]+) \|", section, re.MULTILINE)[1:]

    assert explained == list(TurnStats(turn="t", chat=1, user=1).line_fields())
