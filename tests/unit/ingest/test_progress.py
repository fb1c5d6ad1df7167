"""The progress bar's arithmetic: pace, time left, and when a batch is over."""

from datetime import UTC, datetime, timedelta

from app.ingest.progress import LINGER_S, WINDOW_S, ProgressBoard, Stage
from app.store.documents import Progress


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def test_the_pace_is_of_the_last_minute_and_gives_the_time_left() -> None:
    """Unknown until two batches came; unknown again while documents still wait to be read."""
    clock = HandClock()
    board = ProgressBoard(clock)
    counted = Progress(waiting=0, embedding=3, ready=5, failed=1, passages=130, embedded=30)
    assert board.batch(counted).rate is None
    board.note_embedded(16)
    assert board.batch(counted).rate is None
    for _ in range(4):
        clock.seconds += 2
        board.note_embedded(20)
    batch = board.batch(counted)
    assert (batch.rate, batch.eta_s) == (10.0, 10)
    assert (batch.total, batch.searchable, batch.done, batch.failed, batch.is_over) == (9, 8, 6, 1, False)
    assert board.batch(Progress(1, 3, 5, 1, 130, 30)).eta_s is None
    clock.seconds += WINDOW_S + 1
    assert board.batch(counted).rate is None


def test_a_batch_lasts_until_nothing_was_left_for_a_moment() -> None:
    """So a page can show its end, and a pause between two files does not cut it in two."""
    clock = HandClock()
    board = ProgressBoard(clock)
    board.note_work()
    began = board.began()
    clock.seconds += 5
    board.note_idle()
    clock.seconds += LINGER_S - 1
    board.note_idle()
    board.note_work()
    assert board.began() == began
    board.note_idle()
    clock.seconds += LINGER_S
    board.note_idle()
    assert board.began() == clock.now() != began


def test_a_stage_is_there_only_while_it_lasts() -> None:
    """Set, replaced, cleared; clearing twice is nothing."""
    board = ProgressBoard(HandClock())
    board.set(7, Stage("reading"))
    board.set(7, Stage("reading", 31, 100))
    assert board.get(7) == Stage("reading", 31, 100)
    board.clear(7)
    board.clear(7)
    assert board.get(7) is None
