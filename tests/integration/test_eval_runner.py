"""A run's thread by itself: progress, an end with the process, what another process runs."""

import threading
from collections.abc import Callable

import pytest

from app.catalog import load_catalog
from app.clock import SystemClock
from app.rag.eval_runs import EvalRunner, EvalTools
from app.rag.quoting import make_quoting_chat, quoting_texts
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store import eval_questions, eval_runs
from app.store.engine import Database
from app.store.eval_questions import NewQuestion
from app.store.eval_runs import RunRow
from app.store.models.setup import LOCAL_USER_ID as ME
from tests.integration.library_rows import NOW
from tests.waiting import until


class SteppingClock(SystemClock):
    """Each look at it is a second later."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return float(self._looks)


class Watched:
    """A searcher that finds nothing and tells each time that it is asked."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        self._tell()
        return []


def runner(database: Database, settings: Settings, tell: Callable[[], None]) -> EvalRunner:
    """A runner over three saved questions that nothing answers."""
    for text in ("Why?", "How?", "When?"):
        database.write(lambda s, text=text: eval_questions.put_question(s, ME, NewQuestion(text, "unanswerable"), NOW))
    search = Watched(tell)
    tools = EvalTools(search, lambda: search, make_quoting_chat(quoting_texts(load_catalog())), len)
    return EvalRunner(database, settings, SteppingClock(), tools)


def row(database: Database) -> RunRow:
    return database.read(lambda session: eval_runs.list_runs(session, ME))[0]


def test_progress_is_told_while_it_runs(database: Database, settings: Settings) -> None:
    """Both settings count; at the end all questions are done."""
    seen: list[int] = []
    evaluations = runner(database, settings, lambda: seen.append(row(database).done))
    evaluations.start(ME, {"words_only": True})
    until(lambda: row(database).state == "done", "the run ends")
    assert (seen[0], row(database).done, row(database).total) == (0, 6, 6)
    assert seen == sorted(seen)
    assert 5 in seen
    evaluations.stop()


def test_the_end_of_the_process_ends_a_run(database: Database, settings: Settings) -> None:
    """Between two questions; what begins later ends at once."""
    asked, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        assert go_on.wait(20)

    evaluations = runner(database, settings, wait)
    evaluations.start(ME, {})
    assert asked.wait(20)
    stopping = threading.Thread(target=evaluations.stop)
    stopping.start()
    until(lambda: evaluations.is_stopping, "the end is under way")
    go_on.set()
    stopping.join(20)
    assert row(database).state == "interrupted"
    evaluations.start(ME, {})
    until(lambda: row(database).state == "interrupted", "the late run ends")


def test_a_run_of_another_process_can_be_cancelled(database: Database, settings: Settings) -> None:
    """Only its row is in reach; its thread's end changes nothing then."""
    evaluations = runner(database, settings, lambda: None)
    run_id = database.write(lambda session: eval_runs.begin_run(session, ME, {}, 3, NOW))
    evaluations.cancel(ME, run_id)
    database.write(lambda session: eval_runs.finish_run(session, run_id, "done", NOW, result={}))
    assert (row(database).state, row(database).result) == ("cancelled", None)


def test_what_changes_no_answer_is_no_comparison(database: Database, settings: Settings) -> None:
    """The inputs of page and API let none through; this is the last to refuse."""
    with pytest.raises(ValueError, match="port"):
        runner(database, settings, lambda: None).start(ME, {"port": 1})
    assert database.read(lambda session: eval_runs.list_runs(session, ME)) == []


def test_a_database_that_is_closed_in_a_run_is_left_alone(
    database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread ends with a line; the next start ends the row."""
    asked, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        assert go_on.wait(20)

    evaluations = runner(database, settings, wait)
    evaluations.start(ME, {})
    assert asked.wait(20)
    database.close()
    go_on.set()
    evaluations.stop()
    assert any(record.getMessage().startswith("eval_not_settled run=1") for record in caplog.records)
    again = Database(settings.database)
    assert row(again).state == "running"
    runner(again, settings, lambda: None).sweep()
    assert row(again).state == "interrupted"
    again.close()
