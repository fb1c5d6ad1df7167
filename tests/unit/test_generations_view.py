"""What the settings page says of a build and its comparison."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.catalog import load_catalog
from app.ingest.generations import Build, Kept, Standing
from app.search.choice import DEFAULT, Spec
from app.store.generations import Counted, GenerationRow
from app.web.generations_view import build_view, kept_view, serving

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CATALOG = load_catalog()
COMPARED: dict[str, Any] = {
    "at": NOW.isoformat(),
    "problem": None,
    "asked": 3,
    "cited": 2,
    "old": {"5": 2, "12": 2},
    "new": {"5": 1, "12": 2},
    "same_first": 1,
    "differ": [
        {"user": 1, "question": "mine", "old": "A", "new": "", "lost": True},
        {"user": 2, "question": "another's", "old": "A", "new": "B", "lost": False},
    ],
}


def row(number: int, state: str, model: str = DEFAULT, **more: Any) -> GenerationRow:
    values: dict[str, Any] = {
        "base_url": None,
        "api_key": None,
        "auto_switch": False,
        "paused_at": None,
        "problem": None,
        "built_at": None,
        "compared": None,
        "switched_at": None,
    }
    return GenerationRow(id=number, model=model, dim=8, state=state, created_at=NOW, **{**values, **more})


OLD = row(1, "active")
STANDING = Standing(Spec(), OLD, is_served=True, build=None, kept=())


def built(compared: dict[str, Any] | None, **more: Any) -> Build:
    new = row(2, "building", "m", base_url="http://h:1/v1", built_at=NOW, compared=compared, **more)
    return Build(new, Counted(9, 9), None, None)


def test_the_settings_say_from_where_scores_are_counted() -> None:
    """In words; nothing where that is 0; that it is not measured yet; and when an embedder is none."""
    far = {"base_url": "http://h:1/v1"}
    cases = [
        (row(1, "active", "m", floor=0.669, floor_rule="1", **far), 0.669, "0.67 alike, so scores are counted", ""),
        (row(1, "active", "m", floor=0.0, floor_rule="1", **far), 0.0, "", ""),
        (row(1, "active", "m", **far), None, "It isn't measured yet", ""),
        (row(1, "active", "m", floor_rule="1", **far), None, "", "Is the model one for embeddings?"),
        (OLD, 0.0, "", ""),
    ]
    for active, floor, counted, warning in cases:
        view = serving(Standing(Spec("m", active.base_url), active, True, None, (), floor), 3, 0, CATALOG)
        assert counted in view.counted
        assert bool(counted) is bool(view.counted)
        if active is not OLD:
            assert warning in view.warning
            assert bool(warning) is bool(view.warning)


def test_numbers_come_with_what_they_are_out_of_and_only_ones_own_questions() -> None:
    """What another user asked is counted, not told."""
    view = build_view(built(COMPARED), STANDING, 1, CATALOG)
    assert (view.state, view.new, view.working) == ("built", "m at h:1", False)
    assert view.compared is not None
    assert view.compared.rows == (
        ("among the first 5", "2 of 2", "1 of 2"),
        ("among the first 12", "2 of 2", "2 of 2"),
    )
    assert "The first passage is the same for 1 of 3 questions." in view.compared.words
    assert [(one.question, one.new, one.lost) for one in view.compared.differ] == [("mine", "nothing", True)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"problem": "embed_unavailable"}, "could not be compared"),
        ({"asked": 0}, "there is nothing to compare"),
        ({"cited": 0}, "None of these answers cites a passage"),
    ],
)
def test_a_comparison_without_numbers_says_why(changes: dict[str, Any], said: str) -> None:
    """And has no rows."""
    view = build_view(built({**COMPARED, **changes}), STANDING, 1, CATALOG).compared
    assert view is not None
    assert view.rows == ()
    assert any(said in words for words in view.words)


@pytest.mark.parametrize(("eta", "words"), [(38, "38 s"), (299, "5 min"), (7800, "2 h 10 min")])
def test_progress_has_a_pace_and_what_is_left(eta: int, words: str) -> None:
    """While it works; not while it is paused."""
    working = Build(row(2, "building", "m"), Counted(1200, 5000), 31.04, eta)
    view = build_view(working, STANDING, 1, CATALOG)
    assert view.counts == "1,200 of 5,000 texts · 31.0 a second"
    assert view.left == f"about {words} left"
    paused = Build(row(2, "building", "m", paused_at=NOW, problem="odd"), Counted(1200, 5000), 31.04, eta)
    view = build_view(paused, STANDING, 1, CATALOG)
    assert (view.state, view.left, view.counts, view.working) == ("paused", "", "1,200 of 5,000 texts", False)
    assert view.problem == CATALOG.t("generations.problem")


def test_what_serves_says_when_it_can_not_be_had_or_another_one_is_wanted() -> None:
    """In words, beside its name."""
    away = Standing(Spec("gone"), row(1, "active", "gone"), is_served=False, build=None, kept=())
    assert serving(away, 10, 4, CATALOG).warning == CATALOG.t("generations.unserved")
    assert serving(away, 10, 4, CATALOG).done == "6 of 10 passages"
    wanted = Standing(Spec("m", "http://h/v1"), OLD, is_served=True, build=None, kept=())
    assert "ask for m" in serving(wanted, 0, 0, CATALOG).warning
    first = Standing(Spec("m", "http://h/v1"), None, is_served=False, build=None, kept=())
    assert serving(first, 0, 0, CATALOG).words == "m at h."


def test_what_is_kept_is_earlier_or_newer() -> None:
    """By its number: a newer one is what was gone back from."""
    earlier = kept_view(Kept(row(1, "retired"), 12_300_000, True), row(2, "active"), CATALOG)
    assert (earlier.earlier, "12 MB" in earlier.words) == (True, True)
    assert not kept_view(Kept(row(3, "retired"), 0, True), row(2, "active"), CATALOG).earlier
