"""Answers a question from the whole of one document: at once where it fits, else section by section.

Owns which of the two it is, the prompt of either, which passages the answer may cite, and what of the document was
read. Sections are noted by `app.rag.map_reduce`; the answer is asked for like any other, by `app.rag.agent` under the
loop guard. Made once per turn by `app.api.turn_whole`, which knows which document is meant.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.rag.agent import AgentHolder, run_agent
from app.rag.asking import closing
from app.rag.bounded import Asked, FixedPrompt, fixed_prompt, is_too_long
from app.rag.errors import LLMError
from app.rag.map_reduce import Notes, join_notes, read_sections
from app.rag.markers import find_markers, strip_markers
from app.rag.pieces import ChatFn, Passage, StreamPiece
from app.rag.prompts import NO_ANSWER_SENTENCE, PastTurn, build_messages, passage_block
from app.rag.space import Space
from app.rag.tokens import estimate_tokens
from app.rag.tool_rounds import Guard
from app.rag.turn import TurnStats
from app.rag.whole_plan import SECTIONS, Section, WholeText, landmarks, passages_of_document, sections_of
from app.rag.whole_prompts import build_notes_prompt, build_section_prompt, build_whole_prompt
from app.rag.whole_texts import WholeTexts

LANDMARKS = 12
"""Passages that stand for a document that was read at once, beside those that are cited: a list of hundreds helps
nobody."""

_MESSAGE_TOKENS = 4
_TALK_SHARE = 4


@dataclass(frozen=True, slots=True)
class WholeQuestion:
    """A question about one document, and the room there is for it. `address` is the document's as tools name it."""

    text: str
    history: Sequence[PastTurn]
    whole: WholeText
    address: str
    space: Space


class WholeReading:
    """One document read for one question. `prompt` is that of the answer, live: its passages are what may be cited."""

    def __init__(self, question: WholeQuestion, texts: WholeTexts, *, room: int | None = None) -> None:
        """Takes milliseconds for a long document: to be made in a worker thread. `room` is what a prompt may take in
        estimated tokens, where that is less than the space says."""
        self._question = question
        self._texts = texts
        self._room = room or question.space.estimated
        whole = question.whole
        rules = self._tokens(build_section_prompt((), SECTIONS, SECTIONS))
        self._passages = passages_of_document(whole, estimate_tokens, most=max(200, (self._room - rules) // 2))
        self._sections = sections_of(self._passages, max(200, self._room - rules), _size)
        self._notes = Notes()
        self.prompt: FixedPrompt = fixed_prompt([], (), question.space.window, question.space.room)
        at_once = self._tokens(build_whole_prompt(self._passages))
        self.fits = at_once <= self._room
        if self.fits:
            self.prompt.passages = self._passages
            talk = _talk_within(question.history, min(self._room - at_once, self._room // _TALK_SHARE))
            self.prompt.messages = build_messages(build_whole_prompt(self._passages), talk, question.text)
        else:
            self.prompt.passages = tuple(section.passages[0] for section in self._read)

    @property
    def is_empty(self) -> bool:
        """Whether the document holds nothing to read."""
        return not self._passages

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the receipt keeps: of how many sections how many were read (none: it was read at once)."""
        document = self._question.whole.document
        facts: dict[str, Any] = {"document_id": document.document_id, "title": self._question.whole.title}
        if self.fits:
            return {**facts, "passages": len(self._passages)}
        total = len(self._sections)
        return {**facts, "sections": total, "read": self._notes.read, "failed": list(self._notes.failed)}

    async def pieces(
        self, holder: AgentHolder, *, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        """Reads and answers; yields what `agent.run_agent` does, and a `tool` piece as each section begins and ends.

        A server that says that the document is too long after all is given it in sections of half the size.

        Raises:
            MalformedReplyError, LLMError: as `agent.run_agent` and `map_reduce.read_sections`.
        """
        holder.read_docs = [self._question.whole.document]
        said: list[str] = []
        try:
            async with closing(self._attempts(holder, chat, stats, guard)) as pieces:
                async for piece in pieces:
                    if piece.kind == "content":
                        said.append(piece.text)
                    yield piece
        finally:
            self._keep_cited("".join(said))

    async def _attempts(
        self, holder: AgentHolder, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        if not self.fits:
            async with closing(self._by_sections(holder, chat, stats, guard)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        has_said = False
        try:
            async with closing(self._answer(holder, chat, stats, guard)) as pieces:
                async for piece in pieces:
                    has_said = has_said or piece.kind == "content"
                    yield piece
            return
        except LLMError as error:
            if has_said or not is_too_long(error):
                raise
        self._take_smaller()
        async with closing(self._by_sections(holder, chat, stats, guard)) as pieces:
            async for piece in pieces:
                yield piece

    async def _by_sections(
        self, holder: AgentHolder, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        question, total = self._question, len(self._sections)
        asked = Asked(question.text, question.address, chat, stats, self._texts, question.space.window, self._room)
        async with closing(read_sections(self._read, total, asked, self._notes)) as pieces:
            async for piece in pieces:
                yield piece
        for code, sentence in self._remarks(total):
            yield StreamPiece("notice", data={"code": code, "message": sentence})
        if not self._notes.notes:
            self.prompt.passages = self._known()
            yield StreamPiece("content", NO_ANSWER_SENTENCE)
            return
        for room in (self._room, self._room // 2):
            has_said = False
            try:
                smaller = replace(asked, room=room)
                async with closing(join_notes(self._notes, total, smaller)) as pieces:
                    async for piece in pieces:
                        yield piece
                self.prompt.passages = self._known()
                self.prompt.messages = asked.messages(build_notes_prompt(self._notes.notes, unread=self._unread(total)))
                async with closing(self._answer(holder, chat, stats, guard)) as pieces:
                    async for piece in pieces:
                        has_said = has_said or piece.kind == "content"
                        yield piece
                return
            except LLMError as error:
                if has_said or not is_too_long(error) or room < self._room:
                    raise

    async def _answer(
        self, holder: AgentHolder, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        stats.finish_reason = None  # that of a note says nothing about the answer
        read = holder.read_docs
        answer = run_agent(self.prompt, holder, chat=chat, toolbox=None, stats=stats, guard=guard)
        async with closing(answer) as pieces:
            async for piece in pieces:
                yield piece
        holder.read_docs = read

    @property
    def _read(self) -> Sequence[Section]:
        """The sections that are to be read."""
        return self._sections[:SECTIONS]

    def _remarks(self, total: int) -> list[tuple[str, str]]:
        """What the reader has to know before the answer, by code."""
        remarks: list[tuple[str, str]] = []
        if total > len(self._read):
            remarks.append(("document_part_read", self._texts.part(len(self._read), total)))
        if failed := len(self._notes.failed):
            remarks.append(("sections_unread", self._texts.unread(failed, len(self._read))))
        return remarks

    def _unread(self, total: int) -> str:
        """The same for the model."""
        left_out = [f"Section {number} could not be read." for number in self._notes.failed]
        if total > len(self._read):
            left_out.append(f"Only the first {len(self._read)} of {total} sections were read.")
        return " ".join(left_out)

    def _known(self) -> tuple[Passage, ...]:
        """The passages that the notes name, and those that sections begin with."""
        return tuple(passage for passage in self._passages if passage.n in self._notes.known)

    def _take_smaller(self) -> None:
        """Cuts the document anew, for half the room; numbers change, and nothing has been said with the old ones."""
        smaller = WholeReading(self._question, self._texts, room=self._room // 2)
        self._room, self._passages, self._sections = smaller._room, smaller._passages, smaller._sections
        self.fits = False
        self.prompt.passages = tuple(section.passages[0] for section in self._read)

    def _keep_cited(self, answer: str) -> None:
        """Of many passages keeps those that the answer cites and those that stand for the parts that were read."""
        cited = {n for marker in find_markers(answer) for n in marker.numbers}
        if self.fits:
            stand = {passage.n for passage in landmarks(self._passages, LANDMARKS)}
        else:
            stand = {section.passages[0].n for section in self._read}
        self.prompt.passages = tuple(one for one in self.prompt.passages if one.n in cited or one.n in stand)

    def _tokens(self, system: str) -> int:
        return sum(
            estimate_tokens(message["content"]) + _MESSAGE_TOKENS
            for message in build_messages(system, (), self._question.text)
        )


def _size(passage: Passage) -> int:
    """What a passage costs in a prompt."""
    return estimate_tokens(passage_block(passage)) + 1


def _talk_within(history: Sequence[PastTurn], room: int) -> tuple[PastTurn, ...]:
    """The newest turns that fit, oldest first, without their markers."""
    kept: list[PastTurn] = []
    for turn in reversed([turn for turn in history if turn.answer.strip()]):
        plain = PastTurn(turn.question, strip_markers(turn.answer))
        room -= estimate_tokens(plain.question) + estimate_tokens(plain.answer) + 2 * _MESSAGE_TOKENS
        if room < 0:
            break
        kept.append(plain)
    return tuple(reversed(kept))
