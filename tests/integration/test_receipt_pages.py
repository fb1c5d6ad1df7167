"""`/turns/{id}` and `/queries`: what a turn recorded, and the questions nothing answered."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.catalog import load_catalog
from app.clock import SystemClock
from app.main import create_app
from app.rag.turn import TurnStats
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database, Session
from app.store.models.setup import LOCAL_USER_ID, User
from app.store.turns import NewTurn
from app.turns.settle import Draft, Ending, query_row, settle
from app.web import receipt_view

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)

SOURCES: list[dict[str, Any]] = [
    {
        "n": 1,
        "document_id": 7,
        "chunk_id": 71,
        "path": "restic/060_forget.rst",
        "title": "Removing snapshots",
        "heading": "Removing snapshots › Policy",
        "page": None,
        "score": 0.81,
        "line_start": 276,
        "cited": True,
    },
    {
        "n": 2,
        "document_id": 8,
        "chunk_id": 81,
        "path": "ups.pdf",
        "title": "UPS manual",
        "heading": "",
        "page": 7,
        "score": 0.55,
        "line_start": 3,
        "cited": False,
    },
]


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        yield client


def database_of(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined]


def stats(turn: str, chat: int, **changes: Any) -> TurnStats:
    known: dict[str, Any] = {
        "mode": "grounded",
        "model": "qwen3:14b",
        "top_score": 0.81,
        "chunks": 2,
        "rounds": 1,
        "cited": 1,
        "prompt_tokens": 7569,
        "completion_tokens": 300,
        "retrieval_ms": 38,
        "first_ms": 1100,
        "total_ms": 9402,
    }
    return TurnStats(turn=turn, chat=chat, user=LOCAL_USER_ID, **{**known, **changes})


def add_turn(
    database: Database,
    turn_id: str = "7f3a9c21aa",
    *,
    question: str = "How do I prune?",
    user_id: int = LOCAL_USER_ID,
    ending: Callable[[Session, turns.BegunTurn], None] | None = None,
    sources: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> turns.BegunTurn:
    """A turn from question to settled answer, by the same functions that a real turn uses."""

    def work(session: Session) -> turns.BegunTurn:
        begun = turns.begin_turn(session, NewTurn(turn_id, user_id, None, None, question, NOW))
        if ending is not None:
            ending(session, begun)
            return begun
        numbers = stats(turn_id, begun.chat_id, **changes)
        prompt = [{"role": "system", "content": "Cite as [n]."}, {"role": "user", "content": question}]
        draft = Draft(
            begun.message_id, "Use forget. [1]", sources=SOURCES if sources is None else sources, prompt=prompt
        )
        query = query_row(numbers, draft, question, [], now=NOW, mode=numbers.mode or "grounded")
        settle(session, Ending("answer", query=query), numbers, draft, now=NOW)
        return begun

    return database.write(work)


def test_a_receipt_shows_what_the_turn_recorded(client: TestClient) -> None:
    """Question, figures, passages with their fate, prompt and log line all stand on the page."""
    begun = add_turn(database_of(client))
    page = client.get("/turns/7f3a9c21aa")
    assert page.status_code == 200
    for words in (
        "How do I prune?",
        "qwen3:14b · answered",
        "9.4 s",
        "1.1 s",
        "1 valid, 0 dropped",
        "8.3 s · 36 tokens/s",
        "restic/060_forget.rst:276",
        "ups.pdf, p. 7",
        "Given, not cited",
        "2 found, 2 given, 1 cited.",
        "2 messages, 7,569 tokens",
        "Counted by the server: 7,569; estimated: ",
        "Cite as [n].",
        f"chat_turn turn=7f3a9c21aa chat={begun.chat_id} user=1 mode=grounded outcome=ok",
        "scaffold_stripped=0",
    ):
        assert words in page.text, words
    assert "style=" not in page.text


def test_the_log_line_of_the_receipt_is_the_line_of_the_turn(client: TestClient) -> None:
    """What the page shows can be searched for in the log, character for character."""
    begun = add_turn(database_of(client), top_score=0.8125, retries=2)
    expected = stats("7f3a9c21aa", begun.chat_id, top_score=0.8125, retries=2, outcome="ok").log_line()
    assert expected in client.get("/turns/7f3a9c21aa").text


def test_a_deflected_receipt_names_the_threshold_and_gives_nothing(client: TestClient) -> None:
    """No passage was given: the nearest are listed as below the threshold, in no colour of evidence."""
    add_turn(database_of(client), mode="deflected", top_score=0.31, cited=0, chunks=0)
    page = client.get("/turns/7f3a9c21aa").text
    assert "the best passage scored 0.31, 0.35 is needed" in page
    assert page.count('class="outcome">Not given: below the threshold') == 2
    assert 'class="cited"' not in page
    assert "2 found, 0 given, 0 cited." in page


def test_a_turn_without_documents_says_that_nothing_was_searched(client: TestClient) -> None:
    """A question asked without documents is no failed search."""
    add_turn(database_of(client), mode="deflected", top_score=0.0, retrieval_ms=0, chunks=0, cited=0, sources=[])
    page = client.get("/turns/7f3a9c21aa").text
    assert "Answered without documents, as asked." in page
    assert "Candidates" not in page


def test_a_running_turn_shows_no_figures(client: TestClient) -> None:
    """Nothing is invented for what is not recorded yet."""
    add_turn(database_of(client), ending=lambda _session, _begun: None)
    page = client.get("/turns/7f3a9c21aa").text
    assert "running" in page
    assert "Where the time went" not in page
    assert "Log line" not in page
    assert "No prompt was sent." in page


def test_a_turn_that_a_kill_interrupted_shows_no_figures(client: TestClient) -> None:
    """The counters of a killed turn are unknown, not zero."""

    def killed(session: Session, begun: turns.BegunTurn) -> None:
        numbers = TurnStats(turn=begun.turn_id, chat=begun.chat_id, user=LOCAL_USER_ID, top_score=0.7).numbers()
        marked = turns.Prompted(begun.turn_id, "grounded", numbers, prompt=[], sources=SOURCES)
        turns.mark_prompted(session, begun.message_id, marked)
        turns.interrupt_turn(session, begun.turn_id, NOW)

    add_turn(database_of(client), ending=killed)
    page = client.get("/turns/7f3a9c21aa").text
    assert "interrupted" in page
    assert "Rounds" not in page
    assert "Log line" not in page


@pytest.mark.parametrize(
    ("step", "detector", "words"),
    [
        ("none", None, "quiet"),
        ("note", "requery", "noted: same search"),
        ("final", "loop", "asked to answer: same calls"),
    ],
)
def test_the_guards_step_stands_with_its_cause(step: str, detector: str | None, words: str) -> None:
    """What the guard did, and what repeated itself; a turn of before the cause was kept has the step alone."""
    numbers = {"total_ms": 5, "guard": step, "guard_detector": detector}
    turn = turns.TurnRow("t1", 1, None, None, "done", NOW, NOW, "deflected", "ok", None, numbers, None)
    seen = receipt_view.build(turn, None, None, threshold=0.4, when="14:02", catalog=load_catalog())
    assert receipt_view.Figure("Guard", words) in seen.figures
    del numbers["guard_detector"]
    seen = receipt_view.build(turn, None, None, threshold=0.4, when="14:02", catalog=load_catalog())
    assert receipt_view.Figure("Guard", words.partition(":")[0]) in seen.figures


def test_an_unknown_turn_and_a_foreign_one_look_the_same(client: TestClient) -> None:
    """404 for both: whether a foreign turn exists is not said."""
    database = database_of(client)

    def add_user(session: Session) -> int:
        user = User(username="other", display_name="Other", role="user", created_at=NOW)
        session.add(user)
        session.flush()
        return user.id

    other = database.write(add_user)
    add_turn(database, "foreign1", user_id=other, ending=lambda _session, _begun: None)
    assert client.get("/turns/foreign1").status_code == 404
    assert client.get("/turns/unknown1").status_code == 404


def test_text_of_people_is_never_markup(client: TestClient) -> None:
    """Questions and prompts are escaped, whatever they hold."""
    add_turn(database_of(client), question="<img src=x onerror=alert(1)>")
    assert "<img src=x" not in client.get("/turns/7f3a9c21aa").text


def test_gaps_name_the_score_the_threshold_and_the_nearest(client: TestClient) -> None:
    """A gap says how near the library came, and leads back to chat and receipt."""
    begun = add_turn(database_of(client), question="Who painted it?", mode="deflected", top_score=0.31, cited=0)
    page = client.get("/queries").text
    for words in (
        "Who painted it?",
        "best 0.31, needs 0.35",
        "UPS manual",
        f'href="/chats/{begun.chat_id}"',
        'href="/turns/7f3a9c21aa"',
        'href="/?q=Who+painted+it%3F"',
    ):
        assert words in page, words


def test_a_gap_outlives_its_chat(client: TestClient) -> None:
    """The question stays listed, without links to what is gone."""
    database = database_of(client)
    begun = add_turn(database, question="Who painted it?", mode="deflected", top_score=0.0, cited=0)
    database.write(lambda session: chats.delete_chat(session, LOCAL_USER_ID, begun.chat_id))
    page = client.get("/queries").text
    assert "Who painted it?" in page
    assert "nothing near" in page
    assert "Open the chat" not in page


def test_answered_questions_are_no_gaps(client: TestClient) -> None:
    """The page without gaps says what it would list."""
    add_turn(database_of(client))
    page = client.get("/queries").text
    assert "No gaps." in page
    assert "How do I prune?" not in page.split("<main", 1)[1]


def test_more_gaps_come_on_demand(client: TestClient) -> None:
    """Fifty at once; the rest behind "Show more"."""
    database = database_of(client)
    for number in range(51):
        add_turn(database, f"turn{number}", question=f"Question {number}?", mode="deflected", cited=0)
    assert client.get("/queries").text.count('class="gap"') == 50
    assert client.get("/queries?shown=100").text.count('class="gap"') == 51


class FixedClock(SystemClock):
    """A wall that stands still."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now


def test_the_start_is_a_time_today_and_a_date_before(settings: Settings) -> None:
    """A time is enough today; an older receipt names its day."""
    with TestClient(create_app(settings, clock=FixedClock(NOW)), base_url="http://127.0.0.1:8642") as client:
        add_turn(database_of(client))
        today = f"Turn 7f3a9c21 · {NOW.astimezone():%H:%M} · qwen3:14b"
        assert today in client.get("/turns/7f3a9c21aa").text
    later = FixedClock(NOW + timedelta(days=20))
    with TestClient(create_app(settings, clock=later), base_url="http://127.0.0.1:8642") as client:
        before = f"Turn 7f3a9c21 · 30 Nov, {NOW.astimezone():%H:%M} · qwen3:14b"
        assert before in client.get("/turns/7f3a9c21aa").text
