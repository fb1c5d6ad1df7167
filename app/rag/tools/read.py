"""The tool `read`: lines of one document as a numbered passage."""

from app.rag.pieces import DocRef, Passage
from app.rag.prompts import passage_block
from app.rag.tool_calls import ToolResult
from app.rag.tools.arguments import Call
from app.rag.tools.budget import largest_fitting
from app.rag.tools.desk import NO_ROOM, QUOTES_LINE, Desk, lines_of, shortened, unreadable
from app.rag.tools.names import one_line
from app.store.tool_reads import ShownDocument, texts_of

_CHARS_PER_TOKEN = 4
"""More characters than that no token estimate allows."""


def read_document(call: Call, desk: Desk) -> ToolResult:
    """The lines from `offset` on, `limit` of them or as many as the budget holds.

    Raises:
        PathError: when no document has that path.
    """
    document = desk.tree().document(call.text("path"))
    if not document.has_text:
        return unreadable(desk, document)
    text = desk.read(lambda session: texts_of(session, desk.scope, [document.id])).get(document.id)
    if text is None:
        return _gone(desk, document)
    lines = text.rstrip("\n").split("\n")
    first = max(1, call.number("offset") or 1)
    if first > len(lines):
        there = f"{one_line(document.address)} has {len(lines)} lines; line {first} is past the end."
        return desk.failed("past_end", there)
    limit = call.number("limit") or 0
    last = min(len(lines), first + limit - 1) if limit > 0 else len(lines)
    start = sum(map(len, lines[: first - 1])) + first - 1
    end = start + sum(map(len, lines[first - 1 : last])) + last - first
    known = desk.ledger.covering(document.id, text, start, end if limit > 0 else None)
    if known is not None:
        return _shown_before(desk, document, known, len(lines))
    if not text[start:end].strip():
        blank = f"{one_line(document.address)}, lines {first}-{last}, are blank.{_on(last, len(lines))}"
        return ToolResult(blank, desk.texts.lines(last - first + 1), read=DocRef(document.id, document.path))
    whole = desk.passage(document, text, start, end, first)
    if whole is None:
        return _gone(desk, document)
    return _fitted(desk, document, whole, len(lines))


def _gone(desk: Desk, document: ShownDocument) -> ToolResult:
    return desk.failed("unknown", f"{one_line(document.address)} has just been removed.")


def _fitted(desk: Desk, document: ShownDocument, whole: Passage, total: int) -> ToolResult:
    """As many of the lines as fit; of the first at least its beginning."""
    numbered = desk.ledger.copy().number(whole).passage
    ends = _line_ends(whole.text, desk.tokens * _CHARS_PER_TOKEN)

    def with_lines(index: int) -> str:
        return _text(document, shortened(numbered, ends[index]), total)

    index = largest_fitting(with_lines, len(ends) - 1, desk.tokens)
    if index >= 0:
        shown = shortened(numbered, ends[index])
        text_left = 0
    else:
        line = numbered.text.split("\n", 1)[0]

        def with_chars(length: int) -> str:
            return _text(document, shortened(numbered, length), total, len(line) - length)

        longest = min(len(line), desk.tokens * _CHARS_PER_TOKEN)
        length = largest_fitting(with_chars, longest, desk.tokens)
        shown, text_left = shortened(numbered, max(length, 0)), len(line) - length
    if not shown.text.strip():
        return desk.failed("no_room", NO_ROOM)
    passage = desk.ledger.number(shown).passage
    if (passage.line_start, passage.line_end) == (1, total) and not text_left:
        summary = desk.texts.lines(total)
    else:
        summary = desk.texts.line_range(passage.line_start, passage.line_end, total)
    return ToolResult(
        _text(document, passage, total, text_left),
        summary,
        passages=(passage,),
        read=DocRef(document.id, document.path),
    )


def _text(document: ShownDocument, passage: Passage, total: int, chars_left: int = 0) -> str:
    head = f"{one_line(document.address)}, {lines_of(passage)} of {total}."
    if chars_left:
        head += f" Line {passage.line_end} is cut: {chars_left} more characters; find the part you need with grep."
    return f"{head}{_on(passage.line_end, total)} {QUOTES_LINE}\n{passage_block(passage)}"


def _shown_before(desk: Desk, document: ShownDocument, known: Passage, total: int) -> ToolResult:
    place = f"{one_line(document.address)}, {lines_of(known)} of {total}"
    text = f"{place}: this is passage {known.n}, shown above already.{_on(known.line_end, total)}"
    return ToolResult(text, desk.texts.say("shown_before"), read=DocRef(document.id, document.path))


def _on(last: int, total: int) -> str:
    return f" Go on with offset={last + 1}." if last < total else " That is the end."


def _line_ends(text: str, most: int) -> list[int]:
    """Where each line ends, as far as `most` characters; at least the first."""
    ends: list[int] = []
    at = -1
    while at < len(text) and (not ends or at < most):
        at = text.find("\n", at + 1)
        at = len(text) if at < 0 else at
        ends.append(at)
    return ends
