"""Which documents mention something, as an answer: the exact count, and the first of them with where they do. Pure.

Owns the wording's order and which sentence stands for a document. Counting is `app.search.mentions`', and no model is
asked. Called by `app.api.turn_whole`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.catalog import Catalog
from app.rag.pieces import Passage
from app.rag.quote_markup import quoted, quoted_row
from app.rag.told import Told, as_words
from app.rag.words import stems
from app.render.sentences import sentences

LISTED = 20
"""Documents that the answer names; the search page has all of them."""

_LONGEST = 240


@dataclass(frozen=True, slots=True)
class Mentioning:
    """A document that mentions the words: in how many passages, and the first of them."""

    title: str
    path: str
    passages: int
    first: Passage


def mentions_answer(catalog: Catalog, words: str, total: int, of: int, rows: Sequence[Mentioning]) -> Told:
    """The answer for `total` documents of the `of` that could be searched; `rows` are the first of them."""
    shown = as_words(words.strip('"'))
    if not total:
        return Told(catalog.t("whole.mentions_none", n=of, words=shown) if of else catalog.t("answer.nothing_to_read"))
    head = catalog.t("whole.mentions", n=total, of=of, words=shown)
    titles = [row.title for row in rows]
    lines: list[str] = []
    passages: list[Passage] = []
    for n, row in enumerate(rows, 1):
        name = as_words(row.title)
        if titles.count(row.title) > 1:
            name = f"{name} ({as_words(row.path)})"
        first = replace(at_mention(row.first, words), n=n)
        lines.append(
            "- " + catalog.t("whole.mentions_row", title=name, n=row.passages, said=_said(first.text)) + f" [{n}]"
        )
        passages.append(first)
    parts = [head, "\n".join(lines)]
    if total > len(rows):
        parts.append(catalog.t("whole.mentions_more", n=total - len(rows)))
    return Told("\n\n".join(parts), tuple(passages))


def count_answer(catalog: Catalog, of: int) -> Told:
    """The answer to how many documents there are."""
    return Told(catalog.t("whole.all", n=of) if of else catalog.t("answer.nothing_to_read"))


def _said(text: str) -> str:
    """The sentence as a line, cut where it is long."""
    line = quoted_row(text) if text.lstrip().startswith("|") else quoted(text)
    return line if len(line) <= _LONGEST else line[:_LONGEST].rsplit(" ", 1)[0] + " …"


def at_mention(passage: Passage, words: str) -> Passage:
    """The part of a passage that mentions the words first: the first of its sentences that holds most of them; a
    heading only where no sentence does."""
    wanted = stems(words)
    plain = words.strip('"').casefold()
    units = sentences(passage.text)
    best: tuple[int, int, int] | None = None
    for unit in sorted(units, key=lambda unit: unit.kind == "heading"):
        if best is not None and unit.kind == "heading":
            break
        text = passage.text[unit.start : unit.end]
        shared = len(wanted & stems(text)) + (plain in " ".join(text.split()).casefold())
        if shared and (best is None or shared > best[0]):
            best = (shared, unit.start, unit.end)
    if best is None:
        return passage
    _, start, end = best
    text = passage.text[start:end]
    line = passage.line_start + passage.text.count("\n", 0, start)
    begin = passage.char_start + start
    return replace(
        passage,
        text=text,
        char_start=begin,
        char_end=begin + len(text),
        line_start=line,
        line_end=line + text.count("\n"),
    )
