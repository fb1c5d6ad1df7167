"""How many documents go into one transaction."""

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from app.clock import SystemClock
from app.ingest.storing import STORE_AT_ONCE, STORE_BESIDE_TURNS, STORE_CHARS, Storing
from app.ingest.yielding import Yielding


class Notes:
    """A pipeline that notes what it stores, and leases that note what was let go."""

    def __init__(self) -> None:
        self.stored: list[list[str]] = []
        self.let: list[str] = []
        self.times = 0

    def store(self, reads: list[Any]) -> None:
        self.stored.append([read.task.job for read in reads])
        if "bad" in self.stored[-1]:
            raise KeyError("bad")

    def let_go(self, jobs: Iterable[str]) -> None:
        self.let += jobs

    def note(self) -> None:
        self.times += 1


def read(job: str, chars: int = 10) -> Any:
    return SimpleNamespace(task=SimpleNamespace(job=job), extraction=SimpleNamespace(text="x" * chars))


def storing(notes: Notes, turns: list[bool]) -> Storing:
    """`turns` says for each look whether a turn begins; none once it is empty."""
    stopping = threading.Event()
    first = Yielding(SystemClock(), lambda: bool(turns) and turns.pop(0), stopping)
    return Storing(notes, notes, first, stopping, is_reading=lambda: False, stored=notes.note)  # type: ignore[arg-type]


@pytest.mark.parametrize(("turns", "most"), [([], STORE_AT_ONCE), ([True], STORE_BESIDE_TURNS)])
def test_transactions_are_small_where_someone_is_asking_questions(turns: list[bool], most: int) -> None:
    """So that the next question waits for a short one at most; all are stored, in their order, once."""
    notes = Notes()
    lane = storing(notes, turns)
    jobs = [str(number) for number in range(STORE_AT_ONCE + 1)]
    for job in jobs:
        lane.put(read(job))
    while lane.step() == 0:
        pass
    assert [job for some in notes.stored for job in some] == notes.let == jobs
    assert max(map(len, notes.stored)) == most
    assert notes.times == len(notes.stored)


def test_long_documents_are_stored_fewer_at_a_time() -> None:
    """Their text is what takes the time."""
    notes = Notes()
    lane = storing(notes, [])
    for job in "abc":
        lane.put(read(job, STORE_CHARS // 2))
    lane.finish()
    assert notes.stored == [["a", "b"], ["c"]]


def test_what_cannot_be_stored_is_let_go_all_the_same() -> None:
    """Its lease would be kept alive for ever."""
    notes = Notes()
    lane = storing(notes, [])
    lane.put(read("bad"))
    with pytest.raises(KeyError):
        lane.step()
    assert notes.let == ["bad"]
    assert lane.step() is None
