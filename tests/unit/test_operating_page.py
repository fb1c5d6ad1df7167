"""docs/operating.md explains every field of the lines for a turn and for a request to `/v1`, in the line's order."""

import logging
import re

import pytest

from app.api.openai_proxy import ProxyLine
from app.rag.turn import TurnStats
from app.settings import ROOT


def test_every_field_of_the_turn_line_is_explained_in_order() -> None:
    """A new field without a sentence, or a sentence without a field, fails."""
    assert explained("## One line per turn") == list(TurnStats(turn="t", chat=1, user=1).line_fields())


def test_every_field_of_the_proxy_line_is_explained_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """Likewise."""
    with caplog.at_level(logging.INFO, "app.proxy"):
        ProxyLine(model="m", mode="note", verdict="pass").log()
    assert explained("## One line per request to `/v1`") == re.findall(r"(\w+)=", caplog.records[0].getMessage())


def explained(heading: str) -> list[str]:
    """The fields in the table under a heading."""
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    section = page.split(heading)[1].split("\n## ")[0]
    return re.findall(r"^\| ([a-z_]+) \|", section, re.MULTILINE)[1:]
