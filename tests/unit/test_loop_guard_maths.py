"""The loop guard's log: day arithmetic, names and keys."""

import pytest

from app.store.loop_guard_log import (
    LOOP_GUARD_LOG_DEFAULT_DAYS,
    LOOP_GUARD_LOG_RETENTION_DAYS,
    MODEL_NAME_LIMIT,
    Environment,
    bounded_model_name,
    epoch_day,
    first_day_of_window,
    short_hash,
)
from app.store.loop_guard_reading import LARGE_DENOMINATOR, upper_bound_at_zero


@pytest.mark.parametrize(
    ("secs", "day"), [(0, 0), (86_399, 0), (86_400, 1), (1_789_732_800, 20_714), (1_789_689_600, 20_714)]
)
def test_d42_days_are_counted_from_the_epoch(secs: int, day: int) -> None:
    """A day begins at midnight, UTC."""
    assert epoch_day(secs) == day


@pytest.mark.parametrize(("days", "first"), [(1, 100), (7, 94), (0, 100), (10_000, 11)])
def test_d43_a_window_ends_with_today_and_is_clamped(days: int, first: int) -> None:
    """Today counts as one of the days."""
    assert first_day_of_window(100 * 86_400 + 5, days) == first


def test_the_window_of_a_reader_who_names_none_lies_within_what_is_kept() -> None:
    """30 of 90 days."""
    assert (LOOP_GUARD_LOG_DEFAULT_DAYS, LOOP_GUARD_LOG_RETENTION_DAYS) == (30, 90)


def test_d44_a_model_name_is_cut_at_code_points() -> None:
    """Not at bytes: each é is two of them. Half a character, which no database takes, becomes a question mark."""
    assert MODEL_NAME_LIMIT == 256
    assert bounded_model_name("é" * 300) == "é" * 256
    assert bounded_model_name("a\ud800b") == "a?b"


def test_keys_are_stable_short_and_bound_to_the_installation() -> None:
    """16 hex digits; with another key another hash, so that a guess can't be compared without it."""
    first = short_hash(b"k" * 32, "write_file:1f2e3d4c5b6a7980")
    assert first == short_hash(b"k" * 32, "write_file:1f2e3d4c5b6a7980")
    assert first != short_hash(b"l" * 32, "write_file:1f2e3d4c5b6a7980")
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert len(short_hash(b"k" * 32, "half \ud800")) == 16


def test_an_environment_is_the_same_only_with_the_same_facts() -> None:
    """None is a fact of its own: not known is not empty."""
    ids = {
        Environment().env_id,
        Environment(backend="").env_id,
        Environment(backend="llama.cpp", backend_build="b1").env_id,
        Environment(backend="llama.cpp", backend_build="b2").env_id,
        Environment(strikes=2).env_id,
        Environment(stagnation=2).env_id,
    }
    assert len(ids) == 6
    assert Environment(strikes=2).env_id in ids


def test_zero_trips_bound_the_rate_by_about_three_over_the_requests() -> None:
    """With 95 % confidence; nothing is known without requests."""
    assert upper_bound_at_zero(1000) == pytest.approx(3 / 1000, rel=0.01)
    assert upper_bound_at_zero(LARGE_DENOMINATOR) == pytest.approx(1 / 1000, rel=0.01)
    assert upper_bound_at_zero(1) == pytest.approx(0.95)
    assert upper_bound_at_zero(0) is None
