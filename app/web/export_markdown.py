"""A chat, or one answer of it, as Markdown with footnotes. Pure.

GitHub's footnotes (`[^1]`), which most other writers of Markdown read too: title, place, the sentence that backs the
claim, and the address where it opens. Called by `app.web.exports`. Numbers that name no passage are left out; code,
links and boxes stay as they were written; thinking and tool calls are no part of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.catalog import Catalog
from app.edge.answers import SourceRow, locator_of, reader_href, title_of
from app.rag.markers import Marker, replace_markers
from app.render.sentences import code_spans, inside, sentences

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
_HEADING_CHARS = 160


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, its answer as written, the passages the answer may name, and what is said of an answer that did not
    end well (empty for one that did)."""

    turn_id: str
    question: str
    answer: str
    sources: Sequence[SourceRow]
    remark: str = ""


@dataclass(slots=True)
class _Notes:
    """Footnotes in the order of their first mention, numbered through a file."""

    numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    rows: list[tuple[str, SourceRow]] = field(default_factory=list[tuple[str, SourceRow]])

    def number(self, turn_id: str, row: SourceRow) -> int:
        """The number of a source's footnote, the same at each mention."""
        key = (turn_id, int(row["n"]))
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers) + 1
            self.rows.append((turn_id, row))
        return self.numbers[key]


def as_markdown(catalog: Catalog, title: str, exchanges: Sequence[Exchange], origin: str) -> str:
    """The file's text.

    Args:
        title: Of the chat; empty for a single answer, which begins with its question.
        exchanges: In order.
        origin: Where Docent is reached (`http://nas.lan:8642`), for the footnotes' addresses.
    """
    notes = _Notes()
    parts = [f"# {_line(title)}"] if title else []
    for exchange in exchanges:
        parts += _exchange(exchange, notes, 2 if title else 1)
    footnotes = [
        _footnote(catalog, number, row, origin + reader_href(row, turn_id))
        for number, (turn_id, row) in enumerate(notes.rows, 1)
    ]
    return "\n\n".join([*parts, *footnotes]) + "\n"


def file_name(title: str) -> str:
    """A file's name from a chat's title: its words without what systems give a meaning of their own, at most 80
    characters, never empty and never hidden."""
    kept = "".join(character if character.isalnum() or character in " -_" else " " for character in title)
    return (" ".join(kept.split())[:80].strip(" -_") or "chat") + ".md"


def _exchange(exchange: Exchange, notes: _Notes, level: int) -> Iterator[str]:
    question = " ".join(exchange.question.split())
    short = len(question) <= _HEADING_CHARS
    yield f"{'#' * level} {_line(question if short else question[:_HEADING_CHARS].rpartition(' ')[0] + ' …')}"
    if not short:
        yield "\n".join(f"> {_line(line)}" if line.strip() else ">" for line in exchange.question.splitlines())
    rows = {int(row["n"]): row for row in exchange.sources if row.get("n")}

    def written(marker: Marker) -> str:
        known = [rows[n] for n in marker.numbers if n in rows]
        return "".join(f"[^{notes.number(exchange.turn_id, row)}]" for row in known)

    if answer := exchange.answer.strip():
        yield _closed(replace_markers(_without_footnotes(answer), written))
    if exchange.remark:
        yield f"*{_line(exchange.remark)}*"


def _footnote(catalog: Catalog, number: int, row: SourceRow, address: str) -> str:
    place = " ".join(locator_of(row).split())
    quote = backing(row)
    said = f" “{_line(quote)}”" if quote else ""
    return (
        f"[^{number}]: **{_line(title_of(row))}**, {_code(place)}.{said} [{catalog.t('chat.export_open')}]({address})"
    )


def backing(row: SourceRow) -> str:
    """The sentence of a source's quote that backs the claim, as far as the quote holds it; without one the quote."""
    quote, marks = str(row.get("quote") or ""), row.get("marks") or ()
    if not marks:
        return quote
    first = int(marks[0][0])
    units = [unit for unit in sentences(quote) if unit.start <= first < unit.end]
    return quote[units[0].start : units[0].end] if units else quote


def _line(text: str) -> str:
    """Text on one line that Markdown takes as it stands."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _without_footnotes(answer: str) -> str:
    """A footnote that the model wrote by itself would name one of ours: outside of code it becomes plain text."""
    code = code_spans(answer)
    return re.sub(r"\[\^", lambda found: found.group() if inside(code, found.start()) else r"\[^", answer)


def _closed(answer: str) -> str:
    """An answer that broke off in a block of code gets the block's end, so that what follows is no code."""
    fence = ""
    for line in answer.splitlines():
        found = _FENCE.match(line)
        if not fence:
            fence = found.group(1) if found and "`" not in found.group(2) else ""
        elif found and found.group(1).startswith(fence) and not found.group(2).strip():
            fence = ""
    return f"{answer}\n{fence}" if fence else answer
