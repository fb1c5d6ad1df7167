"""What a turn has so far: its text, its numbers, its sources; and storing all of it once the turn has ended.

Filled by `app.api.run_turn`; the drafts and the last transaction are `app.turns`'.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from app.api import frames
from app.api.asked import asked_facts
from app.api.frames import DoneCounts, Frame
from app.api.turn_end import TurnEnd, end_of_error
from app.api.turn_start import TurnRequest, TurnStart, facts_of
from app.edge.answers import answer_of_message
from app.edge.deps import Services
from app.edge.errors import InternalError
from app.edge.looked_up import FirstLook, first_look
from app.edge.notices import trimmed_words
from app.logs import kv
from app.rag.agent import AgentHolder
from app.rag.citations import CitationCheck, check, source_rows
from app.rag.context import Prompt, passages_of
from app.rag.gate import Gate
from app.rag.pieces import Passage, storable
from app.rag.prompts import NO_ANSWER_SENTENCE
from app.rag.tool_calls import Toolbox
from app.rag.turn import Mode, TurnStats
from app.store import queries, turns
from app.store.engine import StoreError
from app.turns.settle import Draft, Ending, query_row, settle
from app.upstream.client import endpoint_from

_log = logging.getLogger("app.chat")


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer whose markers were checked: `rows` are its numbered sources, `html` what a page shows."""

    content: str
    check: CitationCheck
    rows: list[dict[str, Any]]
    html: str

    def is_unsupported(self, mode: Mode) -> bool:
        """Whether passages were given, something else was said than that they hold no answer, and none is cited."""
        return mode == "grounded" and self.check.valid == 0 and self.content.strip() != NO_ANSWER_SENTENCE


class TurnRecord:
    """One turn's record. `draft` and `stats` are live: the drafts of `app.turns` write what stands there."""

    def __init__(self, services: Services, request: TurnRequest) -> None:
        self.stats = TurnStats(turn=request.ids.turn_id, chat=request.ids.chat_id, user=request.user_id)
        self.draft = Draft(request.ids.message_id)
        self.more: Mapping[str, Any] = {}
        """Facts for the receipt beside those of gate and prompt."""
        self._services = services
        self._request = request
        self._began = services.clock.monotonic()
        self._start: TurnStart | None = None
        self._gate: Gate | None = None
        self._prompt: Prompt | None = None
        self._toolbox: Toolbox | None = None
        self._steps: list[dict[str, Any]] = []
        self._checked: CheckedAnswer | None = None
        self._thinking_since: int | None = None
        self._thought_ms = 0

    def begin(self, start: TurnStart, gate: Gate, prompt: Prompt, toolbox: Toolbox | None) -> list[dict[str, Any]]:
        """Notes what retrieval gave; returns the rows of what came nearest."""
        self._start, self._gate, self._prompt, self._toolbox = start, gate, prompt, toolbox
        stats, draft = self.stats, self.draft
        stats.mode, stats.top_score, stats.retrieval_ms = gate.mode, gate.top_score, gate.retrieval_ms
        self._count_prompt()
        nearest = source_rows(passages_of(gate.nearest), None)
        draft.sources = source_rows(prompt.passages, None) or nearest
        numbers = {**stats.numbers(), **draft.facts}
        draft.prompted = turns.Prompted(stats.turn, gate.mode, numbers, prompt.messages, draft.sources)
        return nearest

    def looked_up(self, facts: Mapping[str, Any]) -> FirstLook | None:
        """What was looked up before the answer, as it stands: `facts` are those of the turn's way."""
        passages = None if self.stats.mode != "grounded" or self._prompt is None else len(self._prompt.passages)
        numbers = {"retrieval_ms": self.stats.retrieval_ms, **self.draft.facts, **facts}
        return first_look(self._services.catalog, numbers, passages)

    def trimmed(self) -> str:
        """What of the prompt did not fit, as words; empty where all did."""
        self._count_prompt()
        return trimmed_words(self._services.catalog, self.draft.facts)

    def add_content(self, text: str) -> str:
        """Adds answer text; returns it as stored, which is what the stream has to say."""
        text = storable(text)
        self._thinking_since = None
        self.stats.first_ms = self.stats.first_ms or self._elapsed_ms()
        self.draft.content += text
        return text

    def add_thinking(self, text: str) -> str:
        """Adds reasoning, and how long it takes; returns it as stored. Rounds of thinking count together, without what
        is said or looked up between them."""
        text, now = storable(text), self._elapsed_ms()
        if self._thinking_since is not None:
            self._thought_ms += now - self._thinking_since
        self._thinking_since = now
        self.draft.thinking += text
        return text

    def add_step(self, step: Mapping[str, Any]) -> None:
        """Notes a tool call that has ended and when it began (`at_ms`), and what it found as sources."""
        self._thinking_since = None
        if step["status"] == "start":
            return
        row = {key: step[key] for key in ("id", "name", "args", "status", "summary", "ms")}
        self._steps.append({**row, "at_ms": max(0, self._elapsed_ms() - step["ms"])})
        self.draft.sources = source_rows(self._passages(), None) or self.draft.sources

    async def check(self) -> CheckedAnswer:
        """Checks the markers and renders, on a worker thread: a long answer takes milliseconds."""
        self._checked = await anyio.to_thread.run_sync(self._check)
        return self._checked

    async def settle(self, end: TurnEnd, holder: AgentHolder) -> Frame:
        """Stores the end of the turn, and gives its terminal frame. Never raises."""
        self._count(holder)
        if end.problem is not None:
            self.draft.facts = {**self.draft.facts, "problem": end.problem}
        now = self._services.clock.now()
        query = self._query(holder) if end.end == "answer" else None
        ending = Ending(end.end, end.code, query)
        try:
            await self._services.database.awrite(
                lambda session: settle(session, ending, self.stats, self.draft, now=now)
            )
        except StoreError:
            # The row stays `running`: the next question in this chat, or the next start, marks it interrupted.
            _log.exception(kv("turn_not_settled", turn=self.stats.turn))
            self.stats.outcome = "error"
            end = end_of_error(self._services.catalog, InternalError())
        if end.frame is not None:
            return end.frame
        if end.end == "answer" and self._checked is not None:
            return self._done(self._checked, holder)
        return frames.stopped(self.draft.message_id, self.stats.answer_chars)

    def _check(self) -> CheckedAnswer:
        content = self.draft.content
        passages = self._passages()
        checked = check(content, passages)
        rows = source_rows(passages, checked)
        html = answer_of_message(self._services.catalog, content, rows, self.stats.turn)
        return CheckedAnswer(content, checked, rows, html)

    def _count(self, holder: AgentHolder) -> None:
        stats, draft = self.stats, self.draft
        self._count_prompt()
        stats.thinking_chars, stats.answer_chars = len(draft.thinking), len(draft.content)
        stats.tool_calls, stats.read_docs = holder.tool_calls, len(holder.read_docs)
        stats.total_ms = self._elapsed_ms()
        if self._checked is not None:
            stats.cited, stats.dropped_cites = self._checked.check.valid, self._checked.check.dropped
            draft.sources = self._checked.rows or draft.sources

    def _count_prompt(self) -> None:
        """The prompt's numbers; again at the end, for a repack changes them."""
        if self._prompt is None or self._start is None or self._gate is None:
            return
        facts = facts_of(self._gate, self._prompt, self._start.settings)
        asked = asked_facts(self._services.catalog, self._start.asked)
        thought = {"thought_ms": self._thought_ms} if self._thought_ms else {}
        self.draft.facts = {**facts, **asked, **self.more, **thought, "tools": self._steps}
        self.draft.prompt = self._prompt.sent
        passages = self._passages()
        self.stats.chunks = len(passages)
        self.stats.chunk_ids = list(dict.fromkeys(passage.chunk_id for passage in passages))
        endpoint = endpoint_from(self._start.settings)
        known = self._services.clients.known_model(endpoint) if endpoint is not None else None
        self.stats.model = self._start.model or known

    def _passages(self) -> tuple[Passage, ...]:
        """Everything the answer may cite: what the prompt gave, and what tools returned."""
        given = self._prompt.passages if self._prompt is not None else ()
        return (*given, *(self._toolbox.passages if self._toolbox is not None else ()))

    def _query(self, holder: AgentHolder) -> queries.QueryRow:
        read = [document.document_id for document in holder.read_docs]
        mode = queries.WITHOUT_DOCUMENTS if self._request.without_documents else self.stats.mode or "deflected"
        now = self._services.clock.now()
        return query_row(self.stats, self.draft, self._request.question, read, now=now, mode=mode)

    def _done(self, answer: CheckedAnswer, holder: AgentHolder) -> Frame:
        stats = self.stats
        counts = DoneCounts(
            thinking_chars=stats.thinking_chars,
            answer_chars=stats.answer_chars,
            total_ms=stats.total_ms,
            retries=stats.retries,
            recovered=stats.recovered,
        )
        citations = (answer.check.valid, answer.check.dropped)
        return frames.done(
            self.draft.message_id,
            answer.html,
            answer.rows,
            citations=citations,
            read_docs=holder.read_docs,
            counts=counts,
        )

    def _elapsed_ms(self) -> int:
        return max(1, round((self._services.clock.monotonic() - self._began) * 1000))
