"""The loop guard on the settings page: its mode, and a panel whose figures are those of the command and the API."""

import csv
import io
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.catalog import load_catalog
from app.cli import main
from app.clock import SystemClock
from app.guard.log_records import TripOutcome
from app.guard.log_writer import GuardLog
from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from app.store.loop_guard_log import Loss, ScanKey, epoch_day
from app.store.loop_guard_reading import LARGE_DENOMINATOR, read_log
from app.web.guard_chart import HEIGHT, chart
from app.web.guard_view import MOST_ROWS, panel
from tests.integration.guard_log_kit import DAY, NOW, SOME, FixedClock, decide, guard_log, put, read, scan_key, trip

HTMX = {"HX-Request": "true"}
PANEL = "/ui/settings/guard"
CATALOG = load_catalog()


@pytest.fixture
def now() -> int:
    return int(SystemClock().now().timestamp())


@pytest.fixture
def app(settings: Settings, database: Database) -> FastAPI:
    return create_app(settings)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        yield client


def words(html: str) -> str:
    """A page as a person reads it."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def rows(html: str, table: str) -> list[list[str]]:
    """The cells of a table of the panel."""
    body = html.partition(f'id="{table}"')[2].partition("</table>")[0].partition("<tbody")[2]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in body.split("</tr>")]
    return [[words(cell).strip() for cell in row] for row in cells if row]


def get(client: TestClient, **params: Any) -> str:
    answer = client.get(PANEL, params=params, headers=HTMX)
    assert answer.status_code == 200
    return answer.text


@pytest.fixture
def traffic(database: Database, now: int) -> None:
    """Two days of both paths: trips of three detectors, an observed one, an outcome, lost decisions."""
    writer: GuardLog = guard_log(database, database, FixedClock(now - DAY), capacity=5)
    decide(writer, scans=1400, trips=2)
    decide(writer, scans=1, trips=1, detector="cycle", action="observed")
    last = decide(writer, scans=1, trips=2, detector="requery", action="final", session="s2", signature="search:1")
    writer.settled(last[0], TripOutcome(outcome="delivered", next_turn="changed"))
    decide(writer, scans=1, trips=3, detector="stagnation", repeat_count=6, threshold=5)
    writer.stop()
    put(database, scans={scan_key(now, "<b>qwen</b>", path="agent"): 12})


@pytest.mark.usefixtures("traffic")
def test_panel_command_and_api_say_the_same(
    client: TestClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Row for row and total for total, read from the page, the CSV and the JSON."""
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        assert main(["trips", "--csv"]) == 0
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    told = client.get("/api/proxy/loop-guard-trips").json()
    page = get(client)
    counted = ("scanned", "trips", "loops", "stagnations", "requeries", "sessions")
    days = rows(page, "guard-days")
    assert [[row["day"], *(str(row[name]) for name in counted)] for row in told["days"]] == [
        [row["day"], *(row[name] for name in counted)] for row in printed
    ]
    assert [[row[0], *(cell.replace(",", "") for cell in row[2:])] for row in days] == [
        [row["day"], *(row[name] for name in counted)] for row in printed
    ]
    totals = rows(page, "guard-totals")
    assert [[cell.replace(",", "") for cell in (row[1], row[2], row[4])] for row in totals] == [
        [str(total[name]) for name in ("scanned", "trips", "sessions")] for total in told["totals"]
    ]
    keys = rows(page, "guard-keys")
    assert [[row[0], row[1], row[2], row[3], row[4]] for row in keys] == [
        [key["signature_hash"], key["detector"], str(key["trips"]), str(key["sessions"]), key["last_day"]]
        for key in told["signatures"]
    ]
    lost = told["lost"]
    assert (lost["trips"] > 0, told["complete"]) == (True, False)
    said = words(page)
    assert CATALOG.t("guard.lost", trips=lost["trips"], scans=lost["scans"], reasons="queue_full 3") in said


@pytest.mark.usefixtures("traffic")
def test_o68_losses_stand_in_the_panel(client: TestClient) -> None:
    """With their mark in the chart, the sentence, and no word of a proven zero."""
    page = get(client)
    said = words(page)
    assert "A zero is not proven while something was lost." in said
    assert "A zero is not proven while decisions were lost." in said
    assert page.count('class="bar-lost"') == 2
    assert "Changed after a trip 1 of 1" in said
    assert "1 more was only observed." in said
    assert "Rate 0" not in said.partition("Scanned per day")[0]
    assert "<b>" not in page
    assert "style=" not in page


def test_what_a_zero_is_worth_depends_on_its_denominator(database: Database) -> None:
    """Below the large one it is a number; from it on a reading; the bound is about 3 divided by the scanned."""
    put(database, scans={scan_key(): LARGE_DENOMINATOR - 1})
    small = panel(read(database), CATALOG, is_off=False, is_locked=False).totals[0]
    assert (small.rate, "no large denominator" in small.words) == ("0 (below 0.0998 %)", True)
    put(database, scans={scan_key(): 1})
    large = panel(read(database), CATALOG, is_off=False, is_locked=False)
    assert "is a large denominator" in large.totals[0].words
    assert ("Rate", "0 (below 0.0998 %)") in large.figures
    assert large.losses.complete
    put(database, losses=(Loss(epoch_day(NOW), "queue_full", 1, 0),))
    assert "not proven" in panel(read(database), CATALOG, is_off=False, is_locked=False).totals[0].words


def test_a_reading_of_two_populations_has_no_common_rate(database: Database) -> None:
    """A noted path and a refused one are not added up to one rate; a total that acted needs no comment."""
    put(database, trip(), scans={scan_key(): 10, scan_key(mode="refuse"): 10})
    seen = panel(read(database), CATALOG, is_off=False, is_locked=False)
    assert [label for label, _ in seen.figures] == ["Scanned", "Trips", "Sessions"]
    assert [(total.rate, bool(total.words)) for total in seen.totals] == [("10 %", False), ("0 (below 25.9 %)", True)]
    put(database, trip(path="agent"))
    agent = panel(read(database), CATALOG, is_off=False, is_locked=False).totals[0]
    assert (agent.scanned, agent.trips, agent.rate) == (0, 1, "–")


@pytest.mark.parametrize(("asked", "window"), [("7", 7), ("90", 90), ("1000000", 90), ("0", 1), ("12", 12)])
def test_a_window_is_chosen_and_clamped(client: TestClient, asked: str, window: int) -> None:
    """Three to choose from; another one in the address stands among them."""
    page = get(client, since_days=asked)
    current = re.findall(r'id="guard-(\d+)"[^>]*aria-current', page)
    assert current == [str(window)]
    assert f"Nothing was scanned in {window} day" in words(page)
    assert client.get(PANEL, params={"since_days": "soon"}, headers=HTMX).status_code == 422


def test_an_empty_log_says_whether_the_guard_is_off_and_how_to_turn_it_on(settings: Settings) -> None:
    """On: nothing came by yet. Off by the page: choose. Off by the environment: the variable."""
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        assert "The guard is on; it counts" in words(get(client))
        client.put("/api/settings", json={"loop_guard_mode": "off"})
        assert "Choose Note it and go on above to turn it on." in words(get(client))
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, loop_guard_mode="off")
    with TestClient(create_app(fixed), base_url="http://127.0.0.1:8642") as client:
        assert "LOOP_GUARD_MODE=note in the environment turns it on." in words(get(client))


def test_the_mode_is_chosen_on_the_page(client: TestClient) -> None:
    """Note, refuse, off in this order, note first; saved for htmx and for a plain form; nonsense is refused."""
    page = client.get("/settings").text
    assert re.findall(r'name="mode" value="(\w+)"( checked)?', page) == [
        ("note", " checked"),
        ("refuse", ""),
        ("off", ""),
    ]
    answer = client.post(PANEL, data={"mode": "refuse"}, headers=HTMX)
    assert "A request that repeats itself is refused." in words(answer.text)
    assert 'value="refuse" checked' in answer.text
    plain = client.post(PANEL, data={"mode": "off"}, follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, "/settings#guard")
    assert client.get("/api/settings").json()["fields"]["loop_guard_mode"]["value"] == "off"
    assert client.post(PANEL, data={"mode": "sometimes"}, headers=HTMX).status_code == 422
    assert client.post(PANEL, data={"mode": "off", "x": "y"}, headers=HTMX).status_code == 422


def test_a_mode_of_the_environment_is_locked(settings: Settings) -> None:
    """Shown with its lock and its variable; no form; a forged one is refused."""
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, loop_guard_mode="refuse")
    with TestClient(create_app(fixed), base_url="http://127.0.0.1:8642") as client:
        page = client.get("/settings").text
        assert "Set by LOOP_GUARD_MODE in the environment" in words(page)
        assert 'value="Refuse the request" readonly' in page
        assert "guard-form" not in page
        assert client.post(PANEL, data={"mode": "off"}, headers=HTMX).status_code == 409


@pytest.mark.usefixtures("traffic")
def test_the_page_shows_the_panel_without_script(client: TestClient) -> None:
    """It says that it is reading and asks for the panel; by its address the panel is there at once."""
    first = client.get("/settings").text
    assert 'hx-get="/ui/settings/guard?since_days=30" hx-trigger="load"' in first
    assert "guard-days" not in first
    assert '<noscript><a href="/settings?guard_days=30#guard">' in first
    second = client.get("/settings", params={"guard_days": "7"}).text
    assert rows(second, "guard-days") == rows(get(client, since_days=7), "guard-days") != []
    client.put("/api/settings", json={"loop_guard_mode": "off"})
    assert "The guard is off: nothing is being counted." in words(get(client))


def test_r60_a_log_that_cannot_be_read_says_so_and_offers_retry(client: TestClient, app: FastAPI) -> None:
    """The panel stays where it is, with the cause and the window that was asked for."""
    database: Database = app.state.docent.database
    database.write(lambda session: session.execute(text("ALTER TABLE loop_guard_trips RENAME TO gone")))
    page = get(client, since_days=7)
    assert "The guard's log could not be read." in words(page)
    assert CATALOG.t("errors.internal") in words(page)
    button = re.search(r'<button[^>]*id="guard-retry"[^>]*>', page)
    assert button is not None
    assert 'type="button"' in button.group()
    assert 'hx-get="/ui/settings/guard?since_days=7"' in button.group()
    assert "hx-trigger" not in page
    database.write(lambda session: session.execute(text("ALTER TABLE gone RENAME TO loop_guard_trips")))
    assert "Nothing was scanned" in words(get(client, since_days=7))


@pytest.mark.usefixtures("traffic")
def test_r60_no_button_of_the_panel_submits(client: TestClient) -> None:
    """The panel holds no form and no button that would submit one, and stands outside of the mode's."""
    page = client.get("/settings", params={"guard_days": 30}).text
    inside = page.partition('id="guard-panel"')[2].partition("</section>")[0]
    assert "<form" not in inside
    assert all('type="button"' in tag for tag in re.findall(r"<button[^>]*>", inside))
    form = page.partition('id="guard-form"')[2].partition("</form>")[0]
    assert "guard-panel" not in form


def test_the_chart_has_a_bar_per_day_and_a_block_per_trip(database: Database) -> None:
    """Both ends are round numbers; a lost day has its mark inside the drawing; many trips become bars."""
    old = NOW - 29 * DAY
    put(
        database,
        *[trip(recorded_at=NOW) for _ in range(3)],
        trip(recorded_at=old),
        scans={scan_key(NOW): 371, scan_key(old): 1},
        losses=(Loss(epoch_day(NOW), "queue_full", 1, 0),),
    )
    drawn = chart(read(database), CATALOG)
    assert (drawn.top, drawn.half, drawn.first, drawn.last) == ("400", "200", "20 Aug", "18 Sep")
    assert [bar[3] for bar in drawn.scanned] == [1.0, round(HEIGHT * 371 / 400, 1)]
    assert (len(drawn.trips), drawn.trip_height, drawn.trip_top) == (4, 30, "")
    assert [mark[1] >= 0 for mark in drawn.lost] == [True]
    assert drawn.trips_words == "4 trips, at most 3 a day, on 18 Sep."
    put(database, *[trip(recorded_at=NOW) for _ in range(9)])
    many = chart(read(database), CATALOG)
    assert (len(many.trips), many.trip_height, many.trip_top) == (2, 60, "12")
    nothing = chart(read(database, now=NOW + 40 * DAY, days=7), CATALOG)
    assert (nothing.scanned, nothing.trips, nothing.scanned_words) == ((), (), "Nothing scanned.")


def test_a_long_table_is_cut_and_says_so(database: Database) -> None:
    """A client that names a thousand models does not fill the page; the command has the rest."""
    day, version = epoch_day(NOW), SOME.app_version
    put(
        database,
        scans={ScanKey(day, "proxy", f"m{n:04}", version, "note", SOME.env_id): 1 for n in range(MOST_ROWS + 3)},
    )
    reading = database.read(lambda session: read_log(session, NOW, 30))
    seen = panel(reading, CATALOG, is_off=False, is_locked=False)
    assert (len(seen.days), seen.hidden) == (MOST_ROWS, 3)
    assert datetime.fromtimestamp(NOW, tz=UTC).date().isoformat() == seen.days[0].day
