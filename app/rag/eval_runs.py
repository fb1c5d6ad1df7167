"""Evaluates the saved questions in the background: one run of a user's at a time, with progress, to be cancelled.

Owns the thread of a run and its clean end. Questions are asked as `docent eval` asks them, with the built-in answerer
in the model's place: no request goes to a model server. Rows are `app.store.eval_runs`', results
`app.rag.eval_result`'s. Made by `app.main`; called by `app.api` and `app.web`.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from app.clock import Clock
from app.errors import AppError, InvalidInputError
from app.logs import kv
from app.rag.eval_result import BUDGET_TOKENS, COMPARABLE, Side, as_question, as_result, settings_of
from app.rag.evaluate import Asked, outcomes
from app.rag.evaluation import Outcome, Question
from app.rag.gate import Search
from app.rag.pieces import ChatFn
from app.settings import Settings
from app.store import documents, eval_questions, eval_runs
from app.store.engine import Database, Session, StoreError
from app.store.eval_questions import EvalQuestion
from app.store.settings import effective

PROGRESS_S = 0.5
STOP_S = 5.0

_log = logging.getLogger("app.eval")


@dataclass(frozen=True, slots=True)
class EvalTools:
    """What a run asks with: the searcher of the current settings, one that knows words only, the built-in answerer, and
    how tokens of passages are counted."""

    searcher: Search
    words_searcher: Callable[[], Search]
    answer: ChatFn
    count_tokens: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class _Job:
    """A run on its way: what is asked, of whom, and whether it is to end."""

    id: int
    user_id: int
    changes: Mapping[str, Any]
    cancelled: threading.Event


class _CancelledError(Exception):
    """The reader, or the end of the process, ended the run."""


class EvalRunner:
    """Runs evaluations, each on a thread of its own. Safe from any thread; `start` and `cancel` block for a moment."""

    def __init__(self, database: Database, settings: Settings, clock: Clock, tools: EvalTools) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._tools = tools
        self._lock = threading.Lock()
        self._jobs: dict[int, tuple[_Job, threading.Thread]] = {}
        self._stopping = False

    @property
    def is_stopping(self) -> bool:
        """Whether the process is ending."""
        return self._stopping

    def sweep(self) -> None:
        """At start: ends what an earlier life of the process left running."""
        ended = self._database.write(lambda session: eval_runs.interrupt_all(session, self._clock.now()))
        if ended:
            _log.info(kv("eval_interrupted", runs=ended))

    def start(self, user_id: int, changes: Mapping[str, Any]) -> int:
        """Begins a run of the user's saved questions and gives its id; `changes` (of `COMPARABLE`) are asked beside the
        current settings, none: only these.

        Raises:
            ConflictError: `eval_run_busy`.
            InvalidInputError: `eval_nothing_to_ask`.
        """
        unknown = set(changes) - set(COMPARABLE)
        if unknown:
            raise ValueError(f"not comparable: {sorted(unknown)}")

        def begin(session: Session) -> int:
            asked = [one for one in eval_questions.questions_of(session, user_id) if not one.is_gone]
            if not asked:
                raise InvalidInputError("eval_nothing_to_ask")
            total = len(asked) * (2 if changes else 1)
            return eval_runs.begin_run(session, user_id, changes, total, self._clock.now())

        run_id = self._database.write(begin)
        job = _Job(run_id, user_id, dict(changes), threading.Event())
        thread = threading.Thread(target=self._run, args=(job,), name="docent-eval", daemon=True)
        with self._lock:
            self._jobs[run_id] = job, thread
            if self._stopping:
                job.cancelled.set()
        thread.start()
        return run_id

    def cancel(self, user_id: int, run_id: int) -> None:
        """Ends a run of the user's; one that has ended stays as it is.

        Raises:
            NotFoundError: `eval_run_not_found`.
        """
        self._database.read(lambda session: eval_runs.get_run(session, user_id, run_id))
        with self._lock:
            known = self._jobs.get(run_id)
        if known is not None:
            known[0].cancelled.set()
            known[1].join(STOP_S)
            return
        # No thread of this process runs it: the row is all there is to end.
        self._database.write(lambda session: eval_runs.finish_run(session, run_id, "cancelled", self._clock.now()))

    def stop(self) -> None:
        """With the process: what runs is ended and waited for. Blocks."""
        with self._lock:
            self._stopping = True
            known = list(self._jobs.values())
        for job, _ in known:
            job.cancelled.set()
        for _, thread in known:
            thread.join(STOP_S)

    def _run(self, job: _Job) -> None:
        began = self._clock.monotonic()
        state: eval_runs.RunState = "failed"
        result: dict[str, Any] | None = None
        code: str | None = None
        try:
            result = anyio.run(partial(self._evaluate, job))
            state = "done"
        except _CancelledError:
            state = "interrupted" if self._stopping else "cancelled"
        except (AppError, StoreError) as error:
            code = error.code if isinstance(error, AppError) else "internal"
            _log.warning(kv("eval_failed", run=job.id, code=code), exc_info=error)
        except Exception:  # noqa: BLE001 - worker edge: the run fails, the process goes on
            code = "internal"
            _log.exception(kv("eval_failed", run=job.id, code=code))
        now = self._clock.now()
        try:
            self._database.write(
                lambda session: eval_runs.finish_run(session, job.id, state, now, result=result, error_code=code)
            )
        except (StoreError, RuntimeError):
            # Too late: the database is closed or full; the next start ends the row.
            _log.warning(kv("eval_not_settled", run=job.id, state=state))
        with self._lock:
            del self._jobs[job.id]
        asked = 0 if result is None else len(result["questions"])
        ms = round((self._clock.monotonic() - began) * 1000)
        _log.info(kv("eval_run", run=job.id, state=state, questions=asked, sides=2 if job.changes else 1, ms=ms))

    async def _evaluate(self, job: _Job) -> dict[str, Any]:
        def read(session: Session) -> tuple[list[EvalQuestion], list[str], Settings]:
            return (
                eval_questions.questions_of(session, job.user_id),
                documents.searchable_paths(session, job.user_id),
                effective(session, self._settings),
            )

        saved, paths, settings = await self._database.aread(read)
        questions = [as_question(one) for one in saved if not one.is_gone]
        sides: list[Side] = []
        current: Mapping[str, Any] = {}
        for changes in (current, job.changes) if job.changes else (current,):
            words_only = bool(changes.get("words_only"))
            changed = settings.model_copy(update={name: changes[name] for name in changes if name != "words_only"})
            searcher = self._tools.words_searcher() if words_only else self._tools.searcher
            asked = Asked(searcher, job.user_id, paths, self._tools.answer, BUDGET_TOKENS, self._tools.count_tokens)
            found = await self._ask(job, questions, asked, changed, done=len(questions) * len(sides))
            sides.append(Side(settings_of(changed, words_only=words_only), found))
        return as_result(sides, [one for one in saved if one.is_gone], questions)

    async def _ask(
        self, job: _Job, questions: list[Question], asked: Asked, settings: Settings, *, done: int
    ) -> list[Outcome]:
        found: list[Outcome] = []
        told = self._clock.monotonic()
        async for outcome in outcomes(questions, asked, settings):
            found.append(outcome)
            if job.cancelled.is_set():
                raise _CancelledError
            if self._clock.monotonic() - told >= PROGRESS_S:
                told, so_far = self._clock.monotonic(), done + len(found)
                await self._database.awrite(
                    lambda session, so_far=so_far: eval_runs.set_progress(session, job.id, so_far)
                )
        return found
