"""One turn from question to terminal frame: retrieve, pack, ask, pieces into frames, check, settle, one log line.

Runs as the body of a server task (`app.turns.registry`); `app.api.chat` starts it and only watches. Owns the order of
these steps and what each way to end means to the reader; every step itself lives elsewhere. This is an edge: the one
place of a turn where any exception is caught.
"""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from app.api import frames
from app.api.asked import chip_rows, remark_words
from app.api.frames import Frame
from app.api.gather import FrameGatherer
from app.api.turn_end import TurnEnd, end_of_error, end_of_stop
from app.api.turn_guard import guarding, turn_guard
from app.api.turn_record import TurnRecord
from app.api.turn_searched import TurnWay, searched_turn
from app.api.turn_start import TurnRequest, read_start
from app.api.turn_whole import special_turn
from app.api.turn_window import TurnWindow
from app.edge.deps import Services
from app.edge.errors import InternalError
from app.edge.looked_up import FirstLook, asked_for
from app.edge.notices import cut_words
from app.errors import AppError
from app.logs import kv
from app.rag.agent import AgentHolder
from app.rag.citations import source_rows
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.pieces import StreamPiece
from app.rag.turn import TurnStats
from app.turns.registry import TurnScope
from app.turns.settle import through

_log = logging.getLogger("app.chat")


class TurnRun:
    """The body of one turn's task. `await TurnRun(…)(scope)` settles the turn whatever happens, and never raises."""

    def __init__(self, services: Services, request: TurnRequest) -> None:
        self._services = services
        self._request = request
        self._record = TurnRecord(services, request)
        self._holder = AgentHolder()
        self._window: TurnWindow | None = None
        self._way: TurnWay | None = None
        self._look: FirstLook | None = None

    @property
    def stats(self) -> TurnStats:
        """The numbers so far."""
        return self._record.stats

    async def __call__(self, scope: TurnScope) -> None:
        """Runs the turn; the scope's log has its terminal frame when this returns."""
        out = FrameGatherer(scope.log)
        record = self._record
        try:
            with self._services.drafts.keeping(record.draft):
                end = await self._ended(out, scope)
            out.frame(await through(self._settled(end)))
        finally:
            _log.info("%s", record.stats.log_line())
            self._services.metrics.turn_ended(record.stats.line_fields())

    async def _ended(self, out: FrameGatherer, scope: TurnScope) -> TurnEnd:
        """Answers, and says how that ended."""
        catalog = self._services.catalog
        try:
            await self._answer(out)
        except asyncio.CancelledError:
            return end_of_stop(catalog, scope.stop_reason, self._services.settings.llm_total_s)
        except MalformedReplyError as error:
            return end_of_error(catalog, error, "malformed")
        except LLMError as error:
            cause = {"code": error.code, "reason": error.reason, "status": error.provider_status}
            _log.warning(kv("turn_failed", turn=scope.turn_id, **cause))
            if self._window is not None:
                self._window.failed(error)
            return end_of_error(catalog, error)
        except AppError as error:
            _log.warning(kv("turn_failed", turn=scope.turn_id, code=error.code), exc_info=True)
            return end_of_error(catalog, error)
        except Exception:  # noqa: BLE001 - the edge of a turn; logged with its traceback
            _log.exception(kv("turn_failed", turn=scope.turn_id, code="internal"))
            return end_of_error(catalog, InternalError())
        return TurnEnd("answer")

    async def _settled(self, end: TurnEnd) -> Frame:
        """Stores the end; also half an answer shows which passages its sentences rest on."""
        if end.end != "answer":
            try:
                await self._record.check()
            except Exception:  # noqa: BLE001 - the text is stored all the same; logged with its traceback
                _log.exception(kv("turn_not_checked", turn=self._request.ids.turn_id))
        return await self._record.settle(end, self._holder)

    async def _answer(self, out: FrameGatherer) -> None:
        request, record = self._request, self._record
        today = self._services.clock.now().date()
        start = await self._services.database.aread(
            lambda session: read_start(session, self._services.settings, request, today)
        )
        window = self._window = TurnWindow(self._services, start.settings)
        way = await special_turn(self._services, request, start, window)
        way = way or await searched_turn(self._services, request, start, window)
        record.more = {**window.facts(), **way.facts}
        nearest = record.begin(start, way.gate, way.prompt, way.toolbox)
        self._way, self._look = way, record.looked_up(way.facts)
        rows, chips = source_rows(way.prompt.passages, None), chip_rows(self._services.catalog, start.asked.chips)
        look = self._look and asdict(self._look)
        out.frame(frames.start(request.ids, way.gate.mode, rows, nearest, chips=chips, looked_up=look))
        for remark in start.asked.remarks:
            out.frame(frames.notice(remark.code, remark_words(self._services.catalog, remark)))
        if trimmed := record.trimmed():
            out.frame(frames.notice("context_trimmed", trimmed))
        chat = self._services.chat_for(start.settings)
        guard = turn_guard(self._services, request, start, record.stats)
        pieces = way.pieces(self._holder, chat=chat, stats=record.stats, guard=guard)
        try:
            with guarding(guard, record.stats, self._services.clock):
                async with aclosing(pieces):
                    async for piece in pieces:
                        self._take(out, piece)
        finally:
            record.more = {**record.more, **way.facts}
        if await window.compare(record.stats.readings):
            record.more = {**record.more, **window.facts()}
            out.frame(frames.notice("prompt_cut", cut_words(self._services.catalog, record.more)))
        checked = await record.check()
        if record.stats.finish_reason == "length":
            out.frame(self._notice("answer_cut"))
        if checked.is_unsupported(way.gate.mode) and not way.is_told:
            out.frame(self._notice("answer_unsupported"))

    def _take(self, out: FrameGatherer, piece: StreamPiece) -> None:
        data = piece.data or {}
        match piece.kind:
            case "content":
                out.text("delta", self._record.add_content(piece.text))
            case "thinking":
                out.text("thinking", self._record.add_thinking(piece.text))
            case "retry":
                out.frame(frames.retry(data))
            case "tool":
                self._record.add_step(data)
                asked = asked_for(self._services.catalog, data["name"], data["args"])
                out.frame(frames.tool(data, asked, self._looked_further()))
            case "notice" if data["code"] == "context_trimmed" and self._window is not None:
                self._window.overflowed()
                out.frame(frames.notice("context_trimmed", self._record.trimmed()))
            case "notice" if "message" in data:
                out.frame(frames.notice(str(data["code"]), str(data["message"])))
            case "notice":
                out.frame(self._notice(str(data["code"]), data.get("step")))
            case "usage":
                pass  # counted by the agent

    def _looked_further(self) -> dict[str, Any] | None:
        """What was looked up, where that has gone on since it was last said."""
        if self._way is None:
            return None
        before, self._look = self._look, self._record.looked_up(self._way.facts)
        return asdict(self._look) if self._look is not None and self._look != before else None

    def _notice(self, code: str, step: str | None = None) -> Frame:
        catalog = self._services.catalog
        key = f"notices.{code}_{step}"
        return frames.notice(code, catalog.t(key if step and catalog.has(key) else f"notices.{code}"))
