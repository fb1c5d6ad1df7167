"""Messages, numbers, sizes and dates of the catalog."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.catalog import Catalog, load_catalog

NOW = datetime(2026, 11, 30, 14, 5, tzinfo=UTC)
ZONE = ZoneInfo("UTC")


@pytest.fixture
def catalog() -> Catalog:
    """English."""
    return load_catalog("en")


def test_placeholders_are_plain_replacements() -> None:
    """A value with braces is not looked into."""
    catalog = Catalog({"a.x": "{n} passage of {name}|{n} passages of {name}"})

    assert catalog.t("a.x", n=1, name="{n}") == "1 passage of {n}"
    assert catalog.t("a.x", n=8212, name="x") == "8,212 passages of x"
    assert catalog.has("a.x")
    assert catalog.area("a") == {"x": "{n} passage of {name}|{n} passages of {name}"}


def test_an_unknown_key_is_an_error(catalog: Catalog) -> None:
    """A missing message must not become a blank page."""
    with pytest.raises(KeyError):
        catalog.t("no.such")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (48_000, "48 kB"),
        (1_900_000, "1.9 MB"),
        (214_000_000, "214 MB"),
        (999_600, "1.0 MB"),
    ],
)
def test_sizes_read_like_a_file_manager(catalog: Catalog, size: int, text: str) -> None:
    """Decimal units, one decimal below ten."""
    assert catalog.size(size) == text


def test_durations(catalog: Catalog) -> None:
    """Milliseconds, seconds with a decimal, minutes."""
    assert [catalog.seconds(ms) for ms in (38, 9_400, 125_000)] == ["38 ms", "9.4 s", "2 min 5 s"]


def test_days_and_times(catalog: Catalog) -> None:
    """Groups of the chat list and the short form of the library."""
    days = [catalog.day(NOW - timedelta(days=n), NOW, ZONE) for n in (0, 1, 3, 40)]
    short = [catalog.when(NOW - timedelta(days=n), NOW, ZONE) for n in (0, 1, 12, 365)]

    assert days == ["Today", "Yesterday", "Last week", "October 2026"]
    assert short == ["14:05", "yesterday", "18 Nov", "30 Nov 2025"]
    assert catalog.time_of_day(NOW, ZONE) == "14:05"
    assert catalog.number(0.8123) == "0.81"
