"""What is counted when two generations are compared: numerators, denominators, and which questions are told."""

from datetime import UTC, datetime

from app.ingest.comparison import SHOWN, Found, summary
from app.store.asked_questions import AskedQuestion

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


class Stopped:
    """A clock that stands still."""

    def now(self) -> datetime:
        return AT

    def monotonic(self) -> float:
        return 0.0


def asked(question: str, *cited: str, user: int = 1) -> AskedQuestion:
    return AskedQuestion(user, question, frozenset(cited))


def found(*shas: str) -> Found:
    return Found(shas, f"passage {shas[0]}" if shas else "")


def test_a_cited_passage_counts_at_the_depth_where_it_stands() -> None:
    """Among the first 5, among the first 12; out of the questions that have a cited passage at all."""
    deep = [f"x{number}" for number in range(6)]
    told = summary(
        [
            (asked("near in both", "a", "b"), found("b", "c"), found("b", "a")),
            (asked("deep in the old", "z"), found(*deep, "z"), found("z")),
            (asked("lost in the new", "z"), found("z"), found(*deep)),
            (asked("cites nothing"), found("a"), found("a")),
        ],
        Stopped(),
    )
    assert (told["asked"], told["cited"], told["same_first"]) == (4, 3, 2)
    assert told["old"] == {"5": 2, "12": 3}
    assert told["new"] == {"5": 2, "12": 2}
    assert told["at"] == AT.isoformat()
    assert [(entry["question"], entry["lost"]) for entry in told["differ"]] == [
        ("lost in the new", True),
        ("deep in the old", False),
    ]
    assert told["differ"][0]["old"] == "passage z"


def test_no_question_is_no_comparison_and_a_few_differences_are_enough() -> None:
    """Zeros with zero as their denominator; a long list is cut, what is lost first."""
    assert summary([], Stopped())["asked"] == 0
    assert summary([], Stopped(), "embed_unavailable")["problem"] == "embed_unavailable"
    many = [(asked(f"q{number}", "z"), found("a"), found("b")) for number in range(SHOWN + 4)]
    lost = (asked("lost", "a", user=7), found("a"), found())
    told = summary([*many, lost], Stopped())["differ"]
    assert len(told) == SHOWN
    assert (told[0]["question"], told[0]["user"], told[0]["new"]) == ("lost", 7, "")
