"""The loop guard's log as it is read: `docent trips` and `GET /api/proxy/loop-guard-trips` give the same figures."""

import csv
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.cli import main
from app.clock import SystemClock
from app.guard.log_records import TripOutcome
from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from app.store.loop_guard_log import Loss
from tests.integration.guard_log_kit import DAY, FixedClock, decide, guard_log, put, scan_key, trip

ADDRESS = "/api/proxy/loop-guard-trips"


@pytest.fixture(autouse=True)
def _environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command reads its settings from the environment, and takes over the log."""
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def now() -> int:
    """The readers' own clock."""
    return int(SystemClock().now().timestamp())


@pytest.fixture
def client(settings: Settings, database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        yield client


@pytest.fixture
def traffic(database: Database, now: int) -> None:
    """Two days: trips of three detectors, one outcome, a loss, and a name that is none."""
    writer = guard_log(database, database, FixedClock(now - DAY), capacity=5)
    decide(writer, scans=400, trips=2)
    decide(writer, scans=1, trips=1, detector="cycle", action="observed")
    last = decide(writer, scans=1, trips=2, detector="requery", action="final", session="s2")
    writer.settled(last[0], TripOutcome(outcome="delivered", next_turn="changed"))
    decide(writer, scans=1, trips=3, detector="stagnation", repeat_count=6, threshold=5)
    writer.stop()
    put(database, scans={scan_key(now, "=qwen\x1b[31m", path="agent"): 1})


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["trips", *arguments]) == 0
    return capsys.readouterr().out


def test_r58_the_window_is_thirty_days_unless_named_and_clamped(client: TestClient) -> None:
    """An empty log is 200 with no days; a number beyond the window is the nearer end of it."""
    answer = client.get(ADDRESS).json()
    assert (answer["since_days"], answer["days"], answer["totals"]) == (30, [], [])
    for asked, given in (("100000", 90), ("1000000000", 90), ("9" * 5000, 90), ("-1", 1), ("0", 1), ("+7", 7)):
        reply = client.get(ADDRESS, params={"since_days": asked})
        assert (reply.status_code, reply.json()["since_days"]) == (200, given)


@pytest.mark.parametrize("text", ["soon", "", "1.0", "1e3", "٣", "--1", "nan", "0x10"])
def test_r58_text_is_refused(client: TestClient, text: str) -> None:
    """What is no whole number gets a sentence, not a window."""
    assert client.get(ADDRESS, params={"since_days": text}).status_code == 422


def test_the_answer_has_the_shape_of_the_contract(client: TestClient, traffic: None) -> None:
    """Names and types that clients rely on."""
    answer = client.get(ADDRESS).json()
    assert {"since_days", "first_day", "days", "totals", "losses", "runs", "env"} <= set(answer)
    row = answer["days"][-1]
    assert list(row) == [
        "day", "path", "model_name", "app_version", "mode", "env_id",
        "scanned", "trips", "loops", "stagnations", "requeries", "sessions",
    ]  # fmt: skip
    assert row["trips"] == row["loops"] + row["stagnations"] + row["requeries"] == 4
    assert (row["scanned"], row["sessions"]) == (403, 2)
    assert answer["outcomes"] == {"delivered": 1, "next:changed": 1}
    assert [facts["env_id"] for facts in answer["env"]] == [row["env_id"]]
    assert answer["lost"] == {"trips": 3, "scans": 0}


def test_r61_both_runs_of_one_database_count(settings: Settings, database: Database, now: int) -> None:
    """The application is started, stopped and started again: two runs, the first clean; rows of both."""
    for _ in range(2):
        app = create_app(settings)
        with TestClient(app, base_url="http://127.0.0.1:8642") as client:
            app.state.docent.guard_log.scanned("agent", "builtin", "note")
            assert app.state.docent.guard_log.flush()
            answer = client.get(ADDRESS).json()
    # A commit to the checkout between the two starts makes two environments, and so two rows.
    assert sum(row["scanned"] for row in answer["days"]) == 2
    assert (answer["runs"]["count"], answer["runs"]["clean"], answer["runs"]["open"]) == (2, 1, 1)
    assert (answer["complete"], answer["losses"]) == (True, [])
    assert (settings.data_dir / "guard.key").stat().st_mode & 0o777 == 0o600


def test_o68_an_overflow_shows_wherever_it_is_read(
    client: TestClient, database: Database, now: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Command, its CSV and the API; the panel reads what they read."""
    writer = guard_log(database, database, FixedClock(now), capacity=1)
    decide(writer, scans=1, trips=3)
    writer.stop()
    assert client.get(ADDRESS).json()["lost"] == {"trips": 2, "scans": 0}
    text = printed(capsys)
    assert "Lost: 2 trips and 0 scans (queue_full 2)." in text
    assert "A zero is not proven" in text
    assert main(["trips", "--csv"]) == 0
    assert "queue_full 2" in capsys.readouterr().err


def test_o69_an_unclean_end_shows_wherever_it_is_read(
    client: TestClient, database: Database, now: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows how much was lost, and so it is said."""
    database.write(lambda s: s.connection().exec_driver_sql(UNCLEAN, (now // DAY,)) and None)
    answer = client.get(ADDRESS).json()
    assert (answer["complete"], answer["losses"][0]["trips"]) == (False, None)
    assert "(unclean_exit)" in printed(capsys)


UNCLEAN = "INSERT INTO loop_guard_losses (day, run_id, reason) VALUES (?, 'dead', 'unclean_exit')"


@pytest.mark.parametrize(
    "asked",
    [{}, {"since_days": 1}, {"since_days": 90, "path": "proxy"}, {"mode": "note", "model": "qwen3:14b"}, {"env": "x"}],
)
def test_all_readers_give_the_same_figures(
    client: TestClient, traffic: None, capsys: pytest.CaptureFixture[str], asked: dict[str, Any]
) -> None:
    """One query: the API's JSON is the command's, and its CSV and table hold the same rows."""
    arguments = [f"--{name.replace('since_days', 'since')}={value}" for name, value in asked.items()]
    answer = client.get(ADDRESS, params=asked).json()
    assert json.loads(printed(capsys, "--json", *arguments)) == answer
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "--csv", *arguments))))
    assert [int(row["scanned"]) for row in rows] == [row["scanned"] for row in answer["days"]]
    assert [int(row["trips"]) for row in rows] == [row["trips"] for row in answer["days"]]
    table = printed(capsys, *arguments).splitlines()
    shown = [line.split()[-6:] for line in table if line[:2] == "20" and "-" in line[:10]]
    names = ("scanned", "trips", "loops", "stagnations", "requeries", "sessions")
    assert shown == [[str(row[name]) for name in names] for row in answer["days"]]


def test_r59_the_command_prints_a_table_and_what_a_trip_is(traffic: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates with their denominators, the bound at zero, keys, environment; nothing a terminal would obey."""
    text = printed(capsys)
    assert text.startswith("Loop guard, 30 days up to today, UTC (from ")
    assert "DAY (UTC)   PATH   MODEL" in text
    assert "proxy, note" in text
    assert "4 trips in 403 scanned (0.993 %). 1 more was only observed." in text
    assert "agent, note" in text
    assert "no trip in 1 scanned; with 95 % confidence the rate is below 95 %. From 3,000 on" in text
    assert "2 different sessions tripped." in text
    assert "strikes=2 observation=15 stagnation=5" in text
    assert text.endswith("A trip is a decision of the guard, not proof that its note arrived.\n")
    assert "\x1b" not in text


def test_r59_an_empty_log_says_why_and_the_window_is_clamped(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the setting that turns the guard on."""
    text = printed(capsys, "--since", "10000")
    assert "90 days" in text
    assert "Nothing was scanned in 90 days, or the guard is off: LOOP_GUARD_MODE=note turns it on." in text
    assert json.loads(printed(capsys, "--json", "--since", "-5"))["since_days"] == 1


def test_a_spreadsheet_takes_no_name_for_a_formula(traffic: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The model's name may come from a client."""
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "--csv"))))
    assert rows[0]["model_name"].startswith("'=qwen")


def test_without_a_database_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking must not leave a data folder behind."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "none"))
    assert main(["trips"]) == 1
    assert "There is no library" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_text_for_a_number_of_days_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As any argument that does not fit."""
    with pytest.raises(SystemExit) as ended:
        main(["trips", "--since", "soon"])
    assert ended.value.code == 2


def test_rows_whose_scan_was_lost_have_no_rate(
    database: Database, now: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trip without a denominator is shown as one."""
    put(database, trip(recorded_at=now), losses=(Loss(now // DAY, "flush_failed", 0, 1),))
    put(database, scans={scan_key(now - 40 * DAY): 9})
    text = printed(capsys)
    assert "1 trip in 0 scanned (-)." in text
    assert "1 different" not in text
