"""The loop guard in a real browser: badge, forced answer, line, receipt, and the panel, after a restart too."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from app.rag.prompts import LAST_CALL_LINE
from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SUBJECT = "when does the nightly backup job start?"
BADGE = "Repeated itself; asked to answer"
WRITTEN_S = 20


@pytest.fixture(scope="module")
def server(start_server: StartServer, mock_llm: MockLlm) -> ServerProcess:
    """A Docent of this module's own, in mode `note` before and after each test."""
    return start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model", RETRIEVAL_MIN_SCORE="0.05")


@pytest.fixture
def chat(server: ServerProcess, open_page: OpenPage, documents: Path, mock_llm: MockLlm) -> Iterator[ChatPage]:
    server.request("PUT", "/api/settings", {"loop_guard_mode": "note"})
    page = open_page(server)
    page.open()
    page.has_read(sorted(documents.iterdir()))
    mock_llm.app.records.clear()
    yield page
    page.is_harmless()


def counts(server: ServerProcess, mode: str) -> dict[str, int]:
    """What the log has for a mode so far, as the API reads it."""
    told = server.request("GET", "/api/proxy/loop-guard-trips", None)[1]
    names = ("scanned", "trips", "loops", "requeries")
    return {name: sum(total[name] for total in told["totals"] if total["mode"] == mode) for name in names}


def written(server: ServerProcess, mode: str, before: dict[str, int], **expected: int) -> None:
    """Waits until the log has so much more than `before`, and no more than that."""
    deadline = time.monotonic() + WRITTEN_S
    while True:
        more = {name: count - before[name] for name, count in counts(server, mode).items()}
        if more == {"scanned": 0, "trips": 0, "loops": 0, "requeries": 0} | expected:
            return
        assert time.monotonic() < deadline, more
        time.sleep(0.1)


def totals(page: Page) -> list[list[str]]:
    """The cells of the panel's totals, without what is said below a name."""
    expect(page.locator("#guard-totals")).to_be_visible()
    found: list[list[str]] = page.locator("#guard-totals tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.firstChild.textContent.trim()))"
    )
    return found


def turn_line(server: ServerProcess) -> str:
    """The last turn's line."""
    return [line for line in server.log().splitlines() if "chat_turn turn=" in line][-1]


def ends_with_a_cited_answer(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The badge, an answer with a numeral, and a last request that offers no tools and asks for the answer."""
    chat.expect_answer("starts at 02:00")
    expect(chat.turn.get_by_text(BADGE)).to_be_visible()
    expect(chat.answer.locator("a.cite").first).to_be_visible()
    expect(chat.turn.get_by_role("alert")).to_have_count(0)
    last = mock_llm.requests[-1].body
    assert "tools" not in last
    assert LAST_CALL_LINE in str(last["messages"][-1]["content"])


def test_a_loop_ends_in_an_answer_and_stands_in_the_panel_after_a_restart(
    chat: ChatPage, server: ServerProcess, mock_llm: MockLlm, open_page: OpenPage
) -> None:
    """Read twice, told at the third, made to answer at the fourth; said in chat, line, receipt and panel."""
    empty = counts(server, "note")
    chat.ask(f"e2e-loop {SUBJECT}")
    ends_with_a_cited_answer(chat, mock_llm)
    assert len(mock_llm.requests) == 5
    assert " guard=final " in turn_line(server)
    chat.page.reload()
    expect(chat.turn.get_by_text(BADGE)).to_be_visible()
    chat.turn.get_by_role("link", name=re.compile("Receipt")).first.click()
    guard = chat.page.locator(".receipt-totals div", has_text="Guard")
    expect(guard).to_contain_text("asked to answer")
    expect(guard).to_contain_text("same calls")
    written(server, "note", empty, scanned=5, trips=2, loops=2)
    chat.open("/settings")
    before = totals(chat.page)
    told: list[dict[str, Any]] = server.request("GET", "/api/proxy/loop-guard-trips")[1]["totals"]
    assert [row[:3] for row in before] == [
        [f"Chats, {total['mode']}, {total['env_id'][:6]}", str(total["scanned"]), str(total["trips"])] for total in told
    ]
    chat.page.locator("summary", has_text="What tripped most").click()
    expect(chat.page.locator("#guard-keys tbody tr", has_text="loop").first).to_be_visible()
    expect(chat.page.locator("#guard-losses")).to_have_text("Nothing was lost.")
    server.restart()
    again = open_page(server)
    again.open("/settings")
    assert totals(again.page) == before
    expect(again.page.locator("#guard-panel")).to_contain_text(re.compile(r"[1-9] ended well, 0 did not, 1 still open"))


def test_o71_near_duplicate_searches_are_noted_and_then_answered(
    chat: ChatPage, server: ServerProcess, mock_llm: MockLlm
) -> None:
    """The second search for the same words is told so, the third ends the looking; both are rows of `requery`."""
    before = counts(server, "note")
    chat.ask(f"e2e-requery {SUBJECT}")
    ends_with_a_cited_answer(chat, mock_llm)
    assert len(mock_llm.requests) == 4
    assert " guard=final " in turn_line(server)
    written(server, "note", before, scanned=4, trips=2, requeries=2)
    told = server.request("GET", "/api/proxy/loop-guard-trips")[1]
    assert {row["path"] for row in told["days"]} == {"agent"}
    assert "requery" in {row["detector"] for row in told["signatures"]}


def test_refuse_asks_for_the_answer_at_the_first_trip_and_off_counts_nothing(
    chat: ChatPage, server: ServerProcess, mock_llm: MockLlm
) -> None:
    """Both set on the page, both in effect from the next question on."""
    page, before = chat.page, counts(server, "refuse")
    for mode, words in (("Refuse the request", "is refused"), ("Off", "Nothing is scanned")):
        chat.open("/settings")
        page.get_by_role("radio", name=mode).check()
        page.get_by_role("button", name="Use this mode").click()
        expect(page.locator("#guard .notice").first).to_contain_text(words)
        mock_llm.app.records.clear()
        chat.open("/")
        chat.ask(f"e2e-loop {SUBJECT}")
        if mode != "Off":
            ends_with_a_cited_answer(chat, mock_llm)
            assert len(mock_llm.requests) == 4
            written(server, "refuse", before, scanned=4, trips=1, loops=1)
            seen = server.request("GET", "/api/proxy/loop-guard-trips")[1]["days"]
    chat.until_settled()
    expect(chat.turn.get_by_text("Repeated itself")).to_have_count(0)
    assert " guard=none " in turn_line(server)
    server.restart()  # writes what is left
    assert server.request("GET", "/api/proxy/loop-guard-trips")[1]["days"] == seen


@pytest.fixture
def settings_page(docent: ServerProcess, open_page: OpenPage) -> ChatPage:
    return open_page(docent)


def test_r60_refresh_and_retry_fetch_again_and_submit_nothing(settings_page: ChatPage, docent: ServerProcess) -> None:
    """What is chosen and not saved stays chosen; a failure says so in the panel, and Retry mends it."""
    chat, page = settings_page, settings_page.page
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    chat.open("/settings")
    expect(page.locator("#guard-panel")).to_contain_text("Nothing was scanned in 30 days.")
    page.get_by_role("radio", name="Off").check()
    page.get_by_label("Address", exact=True).evaluate("(field) => { field.dataset.kept = 'yes'; }")
    with page.expect_response(re.compile(r"/ui/settings/guard\?since_days=30")):
        page.get_by_role("button", name="Refresh").click()
    with page.expect_response(re.compile(r"/ui/settings/guard\?since_days=7$")):
        page.get_by_role("link", name="7 days").click()
    expect(page.locator("#guard-panel")).to_contain_text("Nothing was scanned in 7 days.")
    expect(page.get_by_role("link", name="7 days")).to_be_focused()
    expect(page.get_by_role("radio", name="Off")).to_be_checked()
    assert docent.request("GET", "/api/settings")[1]["fields"]["loop_guard_mode"]["value"] == "note"
    assert posted == []
    assert page.url.endswith("/settings")


def test_r60_a_panel_that_does_not_come_offers_retry(settings_page: ChatPage) -> None:
    """The connection fails while the page opens: the panel says so; Retry asks again."""
    chat, page = settings_page, settings_page.page
    held: list[Route] = []
    page.route("**/ui/settings/guard?*", lambda route: held.append(route))
    chat.open("/settings")
    panel = page.locator("#guard-panel")
    expect(panel.get_by_text("Reading the guard's log…")).to_be_visible()
    expect(panel.get_by_role("button", name="Retry")).to_be_hidden()
    held.pop().abort()
    expect(panel.get_by_role("alert")).to_contain_text("The guard's log could not be read.")
    page.unroute("**/ui/settings/guard?*")
    panel.get_by_role("button", name="Retry").click()
    expect(panel).to_contain_text("Nothing was scanned in 30 days.")


def test_r61_a_killed_run_shows_as_not_ended_well(
    start_server: StartServer, open_page: OpenPage, mock_llm: MockLlm
) -> None:
    """After a kill the panel counts the run and no longer calls the log complete."""
    server = start_server(LLM_BASE_URL=mock_llm.base_url)
    deadline = time.monotonic() + WRITTEN_S
    while server.request("GET", "/api/proxy/loop-guard-trips")[1]["runs"]["count"] == 0:
        assert time.monotonic() < deadline, "the run's row was not written"
        time.sleep(0.05)
    assert server.process is not None
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    with server:
        chat = open_page(server)
        chat.open("/settings")
        panel = chat.page.locator("#guard-panel")
        expect(panel).to_contain_text("1 did not")
        expect(panel.locator(".guard-lost")).to_contain_text("A zero is not proven while something was lost.")


@pytest.mark.parametrize("width", [390, 320])
def test_the_panel_fits_a_phone(
    settings_page: ChatPage, docent: ServerProcess, open_page: OpenPage, width: int
) -> None:
    """Nothing scrolls sideways; what is pressed is big enough for a thumb."""
    chat = open_page(docent, width=width, height=800)
    chat.open("/settings")
    panel = chat.page.locator("#guard-panel")
    expect(panel).to_contain_text("Nothing was scanned in 30 days.")
    chat.has_no_sideways_scroll()
    for place in (panel.get_by_role("link", name="7 days"), panel.get_by_role("button", name="Refresh")):
        box = place.bounding_box()
        assert box is not None
        assert box["height"] >= 42
