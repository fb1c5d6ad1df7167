"""Sentences about what did not fit, from the numbers a turn keeps: for the stream, the page and the receipt. Pure.

`app.api` and `app.web` use them, so that a live notice and a stored one say the same.
"""

from collections.abc import Mapping
from typing import Any

from app.catalog import Catalog


def trimmed_words(catalog: Catalog, numbers: Mapping[str, Any]) -> str:
    """How many of the passages found and of the chat's turns fit; empty where all did. `numbers` are a turn's."""
    words: list[str] = []
    dropped = len(numbers.get("dropped") or ())
    if dropped:
        given = int(numbers.get("taken", numbers.get("given", 0)))
        words.append(catalog.t("notices.trimmed_passages", n=given, found=given + dropped))
    if turns := talk_words(catalog, numbers):
        words.append(turns)
    return " ".join(words)


def talk_words(catalog: Catalog, numbers: Mapping[str, Any], key: str = "notices.trimmed_turns") -> str:
    """How many of the chat's answered turns fit; empty where all did."""
    talk, given = int(numbers.get("talk") or 0), int(numbers.get("talk_given") or 0)
    if given >= talk:
        return ""
    return catalog.t(key if given else f"{key}_none", n=given, talk=talk)


def cut_words(catalog: Catalog, numbers: Mapping[str, Any]) -> str:
    """That the server read a part of the prompt only, and what to change; empty where it read all of it."""
    cut: Mapping[str, int] | None = numbers.get("cut")
    if not cut:
        return ""
    key = f"notices.prompt_cut_{str(numbers.get('server') or '').lower().replace('.', '_').replace(' ', '_')}"
    return catalog.t(key if catalog.has(key) else "notices.prompt_cut", read=cut["read"], sent=about(cut["sent"]))


def about(tokens: int) -> int:
    """An estimate with two digits that mean something."""
    step = 10 ** max(0, len(str(tokens)) - 2)
    return round(tokens / step) * step
