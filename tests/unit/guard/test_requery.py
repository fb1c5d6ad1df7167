"""Which searches are the same search."""

import json
from typing import Any

import pytest

from app.guard.requery import RequeryDetector

TEN = "one two three four five six seven eight nine ten"


def asked(query: Any, name: str = "search", **more: Any) -> tuple[str, str]:
    return name, json.dumps({"query": query, **more})


def trips(*batches: list[tuple[str, str]]) -> list[int | None]:
    """The repeat count of each batch that trips."""
    detector = RequeryDetector()
    found = [detector.check(batch, "s") for batch in batches]
    return [trip.repeat_count if trip else None for trip in found]


@pytest.mark.parametrize(
    "again",
    ["which fuse", "Which  FUSE?", "fuse, which", "ｗhich fuse", "which which fuse"],
)
def test_the_same_words_are_the_same_search(again: str) -> None:
    """Case, width, order and signs don't matter."""
    assert trips([asked("which fuse")], [asked(again)]) == [None, 2]


@pytest.mark.parametrize(
    ("again", "same"), [(f"{TEN} eleven", True), (f"{TEN} eleven twelve", False), (TEN[:-4], True)]
)
def test_nine_tenths_of_the_words_are_enough(again: str, same: bool) -> None:
    """10 of 11 is, 10 of 12 isn't, 9 of 10 is."""
    assert trips([asked(TEN)], [asked(again)]) == [None, 2 if same else None]


def test_other_words_and_other_filters_are_another_search() -> None:
    """How many hits are asked for is no filter."""
    assert trips([asked("fuse")], [asked("breaker")]) == [None, None]
    assert trips([asked("fuse")], [asked("fuse", collection="cellar")]) == [None, None]
    assert trips([asked("fuse")], [asked("fuse", k=20)]) == [None, 2]


def test_words_of_signs_alone_are_compared_as_they_are() -> None:
    """`->` is not `<-`."""
    assert trips([asked("->")], [asked("<-")], [asked("->")]) == [None, None, 2]


def test_searches_of_one_reply_are_not_compared_with_each_other() -> None:
    """None had been answered yet."""
    assert trips([asked("fuse"), asked("fuse")], [asked("fuse")]) == [None, 3]


def test_a_batch_that_also_does_something_new_goes_on() -> None:
    """A new search or a read beside the old one is progress; the old one is still remembered."""
    assert trips([asked("fuse")], [asked("fuse"), ("read", "{}")], [asked("fuse"), asked("pump")], [asked("fuse")]) == [
        None,
        None,
        None,
        4,
    ]


@pytest.mark.parametrize("arguments", ["", "{", "[]", "7", "{}", '{"query":7}', '{"query":"  "}', '{"query":null}'])
def test_arguments_without_a_query_are_no_search(arguments: str) -> None:
    """Broken calls are the loop detector's."""
    assert trips(*[[("search", arguments)]] * 3) == [None] * 3


def test_other_tools_are_no_searches_unless_the_caller_says_so() -> None:
    """Names and their query argument are given."""
    assert trips(*[[asked("fuse", name="grep")]] * 3) == [None] * 3
    detector = RequeryDetector({"grep": "pattern"})
    for expected in (None, 2):
        trip = detector.check([("grep", '{"pattern":"fuse"}')], "s")
        assert (trip.repeat_count if trip else None) == expected


def test_equal_chunks_make_equal_searches_in_any_order() -> None:
    """Nothing found twice is not compared, nor are searches of one reply."""
    detector = RequeryDetector()
    results: list[tuple[int | None, tuple[int, ...]]] = []
    for queries, chunks in [
        (["a", "b"], [[1, 2], [1, 2]]),
        (["c"], [[]]),
        (["d"], [[]]),
        (["e", "f"], [[3], [2, 1]]),
        (["g"], [None]),
        (["h"], [[1, 2, 3]]),
    ]:
        assert detector.check([asked(query) for query in queries], "s") is None
        trip, positions = detector.record(chunks, "s")
        results.append((trip.repeat_count if trip else None, positions))

    assert results == [(None, ()), (None, ()), (None, ()), (3, (1,)), (None, ()), (None, ())]
