"""Reads a document section by section: a note on each, and fewer notes where they are too many for one answer.

Owns the order of these requests, what happens when one fails, and what a reader sees of them: a `tool` piece as each
begins and ends. What a single request is, is `app.rag.bounded`'s: none of them goes through the loop guard, for
sections that hold nothing are answered alike. Used by `app.rag.whole` only, which asks for the answer.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace

from app.rag.asking import closing
from app.rag.bounded import Asked, BoundedRequest, Step, is_too_long
from app.rag.citations import source_rows
from app.rag.errors import LLMError
from app.rag.markers import find_markers
from app.rag.pieces import Passage, StreamPiece
from app.rag.tokens import estimate_tokens
from app.rag.whole_plan import Section
from app.rag.whole_prompts import (
    NOTHING_SENTENCE,
    Note,
    build_joining_prompt,
    build_notes_prompt,
    build_section_prompt,
    note_block,
)

GIVE_UP = 3
"""Sections in a row that could not be read: the server is not there, and the turn ends as the last of them did."""


@dataclass
class Notes:
    """What was noted so far. `failed` are the numbers of sections that could not be read, `known` the numbers of
    passages that notes name."""

    notes: list[Note] = field(default_factory=list[Note])
    read: int = 0
    failed: list[int] = field(default_factory=list[int])
    known: set[int] = field(default_factory=set[int])


async def read_sections(
    sections: Sequence[Section], total: int, asked: Asked, notes: Notes
) -> AsyncGenerator[StreamPiece]:
    """Notes each of `sections`, of which the document has `total`. A section that fails is asked for once more, then
    left out and counted.

    Raises:
        LLMError: when the model can't be asked at all: a failure that no repetition helps, or `GIVE_UP` in a row.
    """
    in_a_row = 0
    for section in sections:
        first, last = section.lines
        args = {"path": asked.address, "offset": first, "limit": last - first + 1}
        step = Step(f"section{section.number}", "read", args)
        yield step.begins(asked.texts.section(section.number, total))
        reader = _SectionReader(section, total, asked)
        async with closing(reader.run()) as pieces:
            async for piece in pieces:
                yield piece
        if reader.error is not None:
            in_a_row += 1
            notes.failed.append(section.number)
            yield step.ends(asked.texts.section_failed(section.number, total), ok=False)
            if in_a_row == GIVE_UP or not (reader.error.retryable or is_too_long(reader.error)):
                raise reader.error
            continue
        in_a_row = 0
        noted = _take(notes, section, reader.text)
        lines = asked.texts.section_read(section.number, total, last - first + 1)
        yield step.ends(lines, sources=source_rows(noted, None))


async def join_notes(notes: Notes, total: int, asked: Asked) -> AsyncGenerator[StreamPiece]:
    """Makes fewer notes of many until a request for the answer has room for them.

    Raises:
        LLMError: when a reply cannot be had, or held nothing twice.
    """
    while len(notes.notes) > 1 and _tokens(asked, build_notes_prompt(notes.notes)) > asked.room:
        fewer: list[Note] = []
        for batch in _batches(notes.notes, total, asked):
            if len(batch) == 1:
                fewer += batch
                continue
            first, last = batch[0].first, batch[-1].last
            step = Step(f"join{first}-{last}-{len(notes.notes)}", "join", {"path": asked.address})
            yield step.begins(asked.texts.joining(first, last))
            request = BoundedRequest(asked, build_joining_prompt(batch, total), asked.note_tokens)
            async with closing(request.run()) as pieces:
                async for piece in pieces:
                    yield piece
            if not request.text:
                yield step.ends(asked.texts.joining(first, last), ok=False)
                raise request.error or LLMError("malformed_reply")
            text = _with_known(request.text, lambda n: n in notes.known)
            fewer.append(replace(batch[0], last=last, heading="", text=text))
            yield step.ends(asked.texts.joining(first, last))
        notes.notes = fewer


def _take(notes: Notes, section: Section, text: str) -> list[Passage]:
    """Keeps the note on a section; the passages it names, and always the one it begins with."""
    by_number = {passage.n: passage for passage in section.passages}
    notes.read += 1
    first = section.passages[0].n
    notes.known.add(first)
    if text.strip(" .") == NOTHING_SENTENCE.strip("."):
        return [by_number[first]]
    text = _with_known(text, by_number.__contains__)
    named = {n for marker in find_markers(text) for n in marker.numbers}
    notes.known |= named
    notes.notes.append(Note(section.number, section.number, first, section.heading, text))
    return [by_number[n] for n in sorted(named | {first})]


def _with_known(text: str, is_known: Callable[[int], bool]) -> str:
    """`text` with every marker naming known passages only, one number each."""
    parts: list[str] = []
    at = 0
    for marker in find_markers(text):
        numbers = [n for n in marker.numbers if is_known(n)]
        before = text[at : marker.start]
        parts += [before if numbers else before.rstrip(" "), *(f"[{n}]" for n in numbers)]
        at = marker.end
    return "".join([*parts, text[at:]])


def _batches(notes: Sequence[Note], total: int, asked: Asked) -> list[list[Note]]:
    """Notes in groups that fit into one request each, two at least while there are two."""
    batches: list[list[Note]] = []
    room = asked.room - _tokens(asked, build_joining_prompt(notes[:1], total)) + estimate_tokens(note_block(notes[0]))
    used = 0
    for note in notes:
        size = estimate_tokens(note_block(note)) + 1
        if batches and (len(batches[-1]) < 2 or used + size <= room):
            batches[-1].append(note)
            used += size
        else:
            batches.append([note])
            used = size
    return batches


def _tokens(asked: Asked, system: str) -> int:
    return sum(estimate_tokens(message["content"]) + 4 for message in asked.messages(system))


class _SectionReader:
    """The note on one section; in halves where the server says that it is too long after all."""

    def __init__(self, section: Section, total: int, asked: Asked) -> None:
        self.error: LLMError | None = None
        self._section = section
        self._total = total
        self._asked = asked
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """What was noted."""
        said = [part for part in self._parts if part != NOTHING_SENTENCE]
        return "\n".join(said) or NOTHING_SENTENCE

    async def run(self) -> AsyncGenerator[StreamPiece]:
        """Asks for the note."""
        left = [self._section.passages]
        while left:
            passages = left.pop(0)
            system = build_section_prompt(passages, self._section.number, self._total)
            request = BoundedRequest(self._asked, system, self._asked.note_tokens)
            async with closing(request.run()) as pieces:
                async for piece in pieces:
                    yield piece
            if request.text:
                self._parts.append(request.text)
            elif is_too_long(request.error) and len(passages) > 1:
                half = len(passages) // 2
                left = [passages[:half], passages[half:], *left]
            else:
                self.error = request.error or LLMError("malformed_reply")
                return
