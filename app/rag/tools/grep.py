"""The tool `grep`: lines that fit a pattern, in one document, a folder, or everywhere, as numbered passages.

Texts are read in small batches, each in a transaction of its own, within a time limit; where that ends the walk, the
result says how far it came.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.rag.context import estimate_tokens
from app.rag.pieces import Passage
from app.rag.tool_calls import ToolResult
from app.rag.tools.arguments import Call
from app.rag.tools.desk import NO_ROOM, QUOTES_LINE, Desk, as_list, lay_out
from app.rag.tools.listing import documents_in, matching
from app.rag.tools.names import ASKED_CHARS, one_line
from app.rag.tools.patterns import LinePattern
from app.rag.tools.scanning import COUNTED, Stretch, scan, stretches
from app.store.tool_reads import ShownDocument, texts_of

GREP_S = 2.0
PASSAGES = 12
PER_DOCUMENT = 3
"""Passages of one document where several fit; the others are counted."""
CONTEXT = 1
CONTEXT_MAX = 10
_BATCH = 32
_BATCH_BYTES = 4_000_000
_LIST_SHARE = 3
"""A third of the room is for naming the documents that fit, where not all can be shown."""
_TAIL_TOKENS = 60
_NUMBERS = 8
"""Line numbers named above one passage."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of a document's text."""

    document: ShownDocument
    text: str
    stretch: Stretch

    @property
    def where(self) -> str:
        matches = self.stretch.matches
        lines = "line" if len(matches) == 1 else "lines"
        more = ", …" if len(matches) > _NUMBERS else ""
        return f"{one_line(self.document.address)}, {lines} {', '.join(map(str, matches[:_NUMBERS]))}{more}"


@dataclass(slots=True)
class _Found:
    """What the walk has found so far."""

    looked: int = 0
    lines: int = 0
    counts: dict[ShownDocument, int] = field(default_factory=dict["ShownDocument", int])
    shown: list[tuple[ShownDocument, str, Sequence[Stretch]]] = field(
        default_factory=list["tuple[ShownDocument, str, Sequence[Stretch]]"]
    )


def grep_documents(call: Call, desk: Desk) -> ToolResult:
    """Counts every matching line and shows some of them with their neighbours.

    Raises:
        PathError: when `path` names nothing.
    """
    asked = call.text("pattern")
    pattern = LinePattern(asked, call.flag("ignoreCase"))
    documents = documents_in(desk.tree(), call.text("path"))
    if glob := call.text("glob"):
        documents = matching(glob, documents)
    readable = [document for document in documents if document.has_text]
    number = call.number("context")
    context = CONTEXT if number is None else max(0, min(number, CONTEXT_MAX))
    found = _walk(desk, readable, pattern, context)
    note = (
        f"{one_line(asked, ASKED_CHARS)!r} is no valid regex; it was looked for as it stands. "
        if pattern.is_literal
        else ""
    )
    summary = desk.texts.matches(found.lines, len(found.counts)) if found.lines else desk.texts.say("nothing")
    if found.looked < len(readable):
        summary = desk.texts.matches_part(summary, found.looked, len(readable))
    head = note + _head(found, len(readable), asked)
    if not found.lines:
        return ToolResult(f"{head} Try another word, or search.", summary)
    return _shown(desk, found, head, summary, call.number("limit"))


def _walk(desk: Desk, documents: Sequence[ShownDocument], pattern: LinePattern, context: int) -> _Found:
    end = desk.clock.monotonic() + GREP_S

    def is_late() -> bool:
        return desk.clock.monotonic() >= end or desk.stop.is_set()

    found = _Found()
    for batch in _batches(documents):
        if is_late():
            return found
        ids = [document.id for document in batch]
        texts = desk.read(lambda session, ids=ids: texts_of(session, desk.scope, ids))
        for document in batch:
            text = texts.get(document.id, "")
            seen = scan(text, pattern, is_late=is_late, most=COUNTED - found.lines)
            if seen.count:
                found.lines += seen.count
                found.counts[document] = seen.count
                if len(found.shown) < PASSAGES:
                    parts = [
                        part for part in stretches(text, seen.lines, context) if text[part.start : part.end].strip()
                    ]
                    found.shown.append((document, text, parts[:PASSAGES]))
            if not seen.finished:
                return found
            found.looked += 1
    return found


def _batches(documents: Sequence[ShownDocument]) -> Iterator[list[ShownDocument]]:
    batch: list[ShownDocument] = []
    size = 0
    for document in documents:
        if batch and (len(batch) == _BATCH or size + document.bytes > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += document.bytes
    if batch:
        yield batch


def _head(found: _Found, total: int, asked: str) -> str:
    among = "1 document" if total == 1 else f"{total} documents"
    if not found.lines:
        head = f"No line fits {one_line(asked, ASKED_CHARS)!r} ({among})."
    else:
        lines = "1 line fits" if found.lines == 1 else f"{found.lines} lines fit"
        head = f"{lines}, in {len(found.counts)} of {among}."
    if found.looked < total:
        why = "there were too many lines to count" if found.lines >= COUNTED else "the time was up"
        head += f" Only {found.looked} of {among} were looked at, then {why}: narrow it with path or glob."
    return head


def _shown(desk: Desk, found: _Found, head: str, summary: str, limit: int | None) -> ToolResult:
    head = f"{head} {QUOTES_LINE}"
    picked = _pick(found, PASSAGES if limit is None or limit < 1 else min(limit, PASSAGES))
    pieces = [(piece, passage) for piece in picked if (passage := _passage(desk, piece)) is not None]
    room = desk.tokens - estimate_tokens(head + "\n\n")
    is_all = sum(len(piece.stretch.matches) for piece in picked) == found.lines
    laid = lay_out(
        desk,
        [(piece.where, passage) for piece, passage in pieces],
        room - (_TAIL_TOKENS if is_all else max(_TAIL_TOKENS, room // _LIST_SHARE)),
    )
    if not laid.blocks:
        return desk.failed("no_room", NO_ROOM)
    parts = [head, *laid.blocks]
    left_out = found.lines - sum(len(piece.stretch.matches) for piece, _ in pieces[: len(laid.blocks)])
    if left_out:
        room -= sum(estimate_tokens(block + "\n\n") for block in laid.blocks)
        parts.append(_left_out(found, left_out, room))
    return ToolResult("\n\n".join(parts), summary, passages=laid.passages)


def _left_out(found: _Found, lines: int, room: int) -> str:
    if len(found.counts) == 1:
        return f"{lines} of the lines are not shown. Read on around the ones above, or use a narrower pattern."
    counts = [f"{one_line(document.address)}  {number}" for document, number in found.counts.items()]
    return as_list("Lines that fit, by document:", counts, len(counts), room)


def _pick(found: _Found, most: int) -> list[_Piece]:
    """At most `most` stretches: the first of each document, then the second of each, …; in the order of the texts."""
    rounds = PER_DOCUMENT if len(found.shown) > 1 else most
    pieces = [
        (place, _Piece(document, text, stretches[round_]))
        for round_ in range(rounds)
        for place, (document, text, stretches) in enumerate(found.shown)
        if round_ < len(stretches)
    ]
    return [piece for _, piece in sorted(pieces[:most], key=lambda one: (one[0], one[1].stretch.start))]


def _passage(desk: Desk, piece: _Piece) -> Passage | None:
    stretch = piece.stretch
    return desk.passage(piece.document, piece.text, stretch.start, stretch.end, stretch.line)
