"""The queue in front of the one writing thread: two ranks, first come first served within each.

Owns the thread and the order. What is run, and in which transaction, is `app.store.engine`'s, the only caller.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")

FIRST, BEHIND, _END = range(3)

_Entry = tuple[int, int, Future[Any], Callable[[], Any]]


class WriterQueue:
    """Runs what it is given, one after the other, on a thread of its own. Safe to use from any thread."""

    def __init__(self, name: str) -> None:
        self._entries: queue.PriorityQueue[_Entry] = queue.PriorityQueue()
        self._numbers = count()
        self._closing = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the thread itself."""
        return threading.current_thread() is self._thread

    def submit(self, work: Callable[[], T], *, goes_first: bool = False) -> Future[T]:
        """Queues `work`; one that goes first is run before every one that does not and has not begun.

        A future that is cancelled before its turn is not run.

        Raises:
            RuntimeError: after `close`.
        """
        future: Future[T] = Future()
        with self._closing:
            if self._is_closed:
                raise RuntimeError("the database is closed")
            self._put(FIRST if goes_first else BEHIND, future, work)
        return future

    def close(self) -> None:
        """Runs what is queued, then ends the thread. Safe to call twice. Blocks."""
        with self._closing:
            if not self._is_closed:
                self._put(_END, Future(), lambda: None)
            self._is_closed = True
        self._thread.join()

    def _put(self, rank: int, future: Future[Any], work: Callable[[], Any]) -> None:
        self._entries.put((rank, next(self._numbers), future, work))

    def _run(self) -> None:
        while True:
            rank, _, future, work = self._entries.get()
            if rank == _END:
                return
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            del future, work  # an idle writer keeps nothing alive


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    """Whatever `work` raises is its caller's to see, on the caller's thread."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - the edge of the thread: raised again by the future
        future.set_exception(error)
    else:
        future.set_result(result)
