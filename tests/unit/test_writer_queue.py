"""Who is served first by the one writing thread."""

import threading
from collections.abc import Callable, Iterator

import pytest

from app.store.writer_queue import WriterQueue


@pytest.fixture
def writer() -> Iterator[WriterQueue]:
    writer = WriterQueue("writer")
    yield writer
    writer.close()


def held(writer: WriterQueue) -> threading.Event:
    """Holds the thread until the event is set."""
    begun, go_on = threading.Event(), threading.Event()
    writer.submit(lambda: (begun.set(), go_on.wait(10)))
    assert begun.wait(10)
    return go_on


def noting(said: list[str], word: str) -> Callable[[], None]:
    return lambda: said.append(word)


def test_what_goes_first_is_run_before_what_was_queued_earlier(writer: WriterQueue) -> None:
    """And within a rank in the order of arrival."""
    go_on, said = held(writer), list[str]()
    writer.submit(noting(said, "a"))
    writer.submit(noting(said, "first"), goes_first=True)
    last = writer.submit(noting(said, "b"))
    writer.submit(noting(said, "second"), goes_first=True)
    go_on.set()
    last.result(10)
    assert said == ["first", "second", "a", "b"]


def test_an_error_is_its_callers_and_the_next_is_run(writer: WriterQueue) -> None:
    """Whatever it is."""

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        writer.submit(fail).result(10)
    assert writer.submit(lambda: 3).result(10) == 3


def test_what_was_cancelled_before_its_turn_is_not_run(writer: WriterQueue) -> None:
    """The others are."""
    go_on, said = held(writer), list[str]()
    assert writer.submit(noting(said, "cancelled")).cancel()
    after = writer.submit(noting(said, "after"))
    go_on.set()
    after.result(10)
    assert said == ["after"]


def test_closing_runs_what_is_queued_and_takes_no_more() -> None:
    """Twice is once."""
    writer, said = WriterQueue("writer"), list[str]()
    go_on = held(writer)
    for word in "abc":
        writer.submit(noting(said, word))
    go_on.set()
    writer.close()
    writer.close()
    assert said == ["a", "b", "c"]
    with pytest.raises(RuntimeError, match="closed"):
        writer.submit(noting(said, "d"))
    assert said == ["a", "b", "c"]


def test_it_knows_its_own_thread(writer: WriterQueue) -> None:
    """By which a write inside a write is refused."""
    assert not writer.is_current
    assert writer.submit(lambda: writer.is_current).result(10)
