"""A document of chapters, and a model that is scripted by what it is asked: for the tests of whole documents."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from app.catalog import load_catalog
from app.rag.agent import AgentHolder
from app.rag.asking import closing
from app.rag.errors import LLMError
from app.rag.pieces import ChatMessages, ContentFilter, DocRef, StreamPiece, ToolCallPiece
from app.rag.prompts import CORRECTION_LINE, PastTurn, parse_passages
from app.rag.space import Space
from app.rag.turn import TurnStats
from app.rag.whole import WholeQuestion, WholeReading
from app.rag.whole_plan import Place, WholeText
from app.rag.whole_prompts import parse_notes, parse_section
from app.rag.whole_texts import whole_texts

LINE = "The pump in cellar {n} is looked after by hand, once a week, on a Monday morning.\n"
Reply = str | StreamPiece | Exception | Sequence[str | StreamPiece | Exception]


def chaptered(chapters: int, lines: int = 20) -> WholeText:
    """A chapter is one chunk of `lines` lines, each naming its chapter."""
    text, places = "", []
    for n in range(1, chapters + 1):
        places.append(Place(100 + n, f"Plan › Chapter {n}", None, len(text)))
        text += f"## Chapter {n}\n\n{LINE.format(n=n) * lines}\n"
    return WholeText(DocRef(7, "plan.md"), "Plan", text, places)


def reading_of(
    whole: WholeText, room: int, *, question: str = "summarise it", history: Sequence[PastTurn] = ()
) -> WholeReading:
    space = Space(room + 500, room)
    return WholeReading(WholeQuestion(question, history, whole, "/library/plan.md", space), whole_texts(load_catalog()))


class Model:
    """Answers by what it is asked: `note(number, total, passages)` for a section, `answer(notes or passages)` else.

    A reply is text, a piece, an error to raise, or several of these in a row; `requests` are all the messages."""

    def __init__(
        self,
        note: Callable[[int, int, list[int]], Reply] | None = None,
        answer: Callable[[list[int]], Reply] | None = None,
        join: Callable[[int, int], Reply] | None = None,
    ) -> None:
        self.requests: list[list[Mapping[str, Any]]] = []
        self.tools: list[object] = []
        self.closed = 0
        self._note = note or (lambda number, total, ns: f"Section {number} speaks of a pump [{ns[0]}].")
        self._answer = answer or (lambda ns: "A pump is looked after " + "".join(f"[{n}]" for n in ns) + ".")
        self._join = join or (lambda first, at: f"Pumps of section {first} [{at}].")

    @property
    def corrected(self) -> list[bool]:
        return [CORRECTION_LINE in str(request[0]["content"]) for request in self.requests]

    def _reply(self, messages: ChatMessages) -> Reply:
        section, notes = parse_section(messages), parse_notes(messages)
        if section is not None:
            return self._note(*section, [given.n for given in parse_passages(messages)])
        if notes and "there are too many for one answer" in str(messages[0]["content"]):
            return self._join(notes[0].first, notes[0].at)
        if notes:
            return self._answer([note.at for note in notes])
        return self._answer([given.n for given in parse_passages(messages)])

    async def __call__(
        self, messages: ChatMessages, *, tools: object, content_filter: ContentFilter | None = None
    ) -> AsyncGenerator[StreamPiece | ToolCallPiece]:
        assert content_filter is not None
        self.requests.append(list(messages))
        self.tools.append(tools)
        reply = self._reply(messages)
        try:
            for step in [reply] if isinstance(reply, str | StreamPiece | Exception) else reply:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, StreamPiece):
                    yield step
                else:
                    for word in step.split(" "):
                        yield StreamPiece("content", content_filter.feed(word + " "))
            yield StreamPiece("content", content_filter.flush())
            used = {"prompt_tokens": 90, "completion_tokens": 7, "finish_reason": "stop"}
            yield StreamPiece("usage", data=used)
        finally:
            self.closed += 1


class Played:
    """A reading played to its end."""

    def __init__(self, reading: WholeReading, model: Model, guard: Any = None) -> None:
        self.pieces: list[StreamPiece] = []
        self.error: LLMError | None = None
        self.stats = TurnStats(turn="t", chat=1, user=1)
        self.holder = AgentHolder()

        async def run() -> None:
            stream = reading.pieces(self.holder, chat=model, stats=self.stats, guard=guard)
            async with closing(stream) as pieces:
                async for piece in pieces:
                    self.pieces.append(piece)

        try:
            asyncio.run(run())
        except LLMError as error:
            self.error = error

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind == "content").strip()

    def data(self, kind: str) -> list[Any]:
        return [piece.data for piece in self.pieces if piece.kind == kind]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Status and summary of each line the reader saw."""
        return [(data["status"], data["summary"]) for data in self.data("tool")]
