"""A whole document without a model: its headings, each with a sentence of its own, word for word. Pure.

Owns which parts and which sentences stand for a document. Called by `app.api.turn_whole` where no model is connected;
it understands nothing, and the first sentence says so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.catalog import Catalog
from app.rag.pieces import Passage
from app.rag.quote_markup import quoted, quoted_row
from app.rag.told import Told, as_words
from app.rag.whole_plan import landmarks
from app.render.sentences import Sentence, sentences

MOST = 24
"""Parts that are shown; more is no outline."""

_FEWEST_WORDS = 4
_LONGEST = 320
_BETWEEN = " › "
_DEEPEST = 3
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w{2,}")


@dataclass(frozen=True, slots=True)
class OutlineTexts:
    """What stands before the outline (it takes the title), and after one that is not all (parts shown, parts)."""

    opening: Callable[[str], str]
    more: Callable[[int, int], str]


def outline_texts(catalog: Catalog) -> OutlineTexts:
    """The texts of `frontend/messages/<language>/whole.json`."""
    return OutlineTexts(
        opening=lambda title: catalog.t("whole.outline", title=title),
        more=lambda shown, total: catalog.t("whole.outline_more", shown=shown, total=total),
    )


def outline(title: str, passages: Sequence[Passage], texts: OutlineTexts) -> Told:
    """The outline of a document's passages; each line ends in the marker of the passage that it quotes."""
    parts = [(passage, line) for passage in passages if (line := _sentence(passage))]
    chosen = {passage.n for passage in landmarks([passage for passage, _ in parts], MOST)}
    shown = [(passage, line) for passage, line in parts if passage.n in chosen]
    levels = [len(passage.heading.split(_BETWEEN)) if passage.heading else 1 for passage, _ in shown]
    least = min(levels, default=1)
    lines: list[str] = []
    before = ""
    depth = 0
    for n, ((passage, line), level) in enumerate(zip(shown, levels, strict=True), 1):
        depth = min(level - least, depth + 1 if lines else 0, _DEEPEST)
        name = passage.heading.rpartition(_BETWEEN)[2]
        label = f"**{as_words(name)}**: " if name and passage.heading != before else ""
        before = passage.heading
        lines.append(f"{'  ' * depth}- {label}{line} [{n}]")
    text = [texts.opening(as_words(title)), "\n".join(lines)]
    if len(parts) > len(shown):
        text.append(texts.more(len(shown), len(parts)))
    return Told("\n\n".join(text), tuple(replace(passage, n=n) for n, (passage, _) in enumerate(shown, 1)))


def _sentence(passage: Passage) -> str:
    """The first sentence that says something, else the first row of a table or the first words, as a line; empty where
    there is none."""
    units = [unit for unit in sentences(passage.text) if unit.kind in ("prose", "row")]
    telling = [unit for unit in units if _says(passage.text[unit.start : unit.end])]
    for unit in [*(unit for unit in telling if unit.kind == "prose"), *telling, *units]:
        if line := _line(passage.text, unit):
            return line
    return ""


def _says(sentence: str) -> bool:
    return len(_WORD.findall(sentence)) >= _FEWEST_WORDS and not sentence.rstrip("*_ ").endswith(":")


def _line(text: str, unit: Sentence) -> str:
    source = text[unit.start : unit.end]
    line = quoted_row(source) if unit.kind == "row" else quoted(source)
    return line if len(line) <= _LONGEST else line[:_LONGEST].rsplit(" ", 1)[0] + " …"
