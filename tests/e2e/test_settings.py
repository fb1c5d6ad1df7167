"""The settings in a real browser: test, save, find, lock; each failure in its own words; the key never shown."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Page, expect

from app.catalog import load_catalog
from app.main import create_app
from app.settings import Settings
from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.route_server import CHAT, OLLAMA, Answer, Running, listing, routes
from tests.server import ServerProcess, free_port

SENTENCES = load_catalog()
KEY = "sk-canary-key-0123456789"


@pytest.fixture(scope="module")
def server(start_server: StartServer) -> ServerProcess:
    """One Docent without a model for the suite; a test that saves removes again."""
    return start_server()


@pytest.fixture
def chat(server: ServerProcess, open_page: OpenPage) -> ChatPage:
    chat = open_page(server)
    chat.open("/settings")
    return chat


@pytest.fixture
def ollama() -> Iterator[Running]:
    with routes(OLLAMA) as running:
        yield running


def check(page: Page, address: str) -> None:
    """Types an address and tests it."""
    page.get_by_label("Address", exact=True).fill(address)
    page.get_by_role("button", name="Test connection").click()


def test_a_server_is_tested_chosen_saved_asked_and_removed(
    server: ServerProcess, open_page: OpenPage, mock_llm: MockLlm
) -> None:
    """From no model to an answer by one, and back to quotes."""
    chat = open_page(server)
    chat.open("/settings")
    page = chat.page
    expect(page.get_by_text("No model is connected. Questions are answered")).to_be_visible()
    check(page, mock_llm.base_url)
    result = page.locator("#test-result")
    expect(result).to_contain_text(re.compile(r"Connected\. mock-model answered in [\d.]+ m?s\."))
    expect(result.locator("div", has_text="Streaming")).to_contain_text("yes")
    expect(page.get_by_role("combobox", name="Model")).to_have_value("mock-model")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. The next question goes to mock-model.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Address", exact=True)).to_have_value(mock_llm.base_url)
    expect(page.locator(".side-foot")).to_contain_text("Answers with mock-model on")
    expect(page.get_by_role("combobox", name="Model")).to_have_value("mock-model")
    page.get_by_role("button", name="Remove the model").click()
    expect(page.get_by_text("Questions are answered with quotes again.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Address", exact=True)).to_have_value("")
    chat.is_harmless()


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"GET /v1/models": Answer(b"<!doctype html><p>hi", kind="text/html")}, "llm_rejected.html"),
        ({"GET /v1/models": Answer({"error": "no"}, 401)}, "llm_rejected.key"),
        ({"GET /v1/models": listing()}, "llm_rejected.no_models"),
        ({"GET /v1/models": Answer(b"plain words, no JSON", kind="text/plain")}, "llm_rejected.not_api"),
        ({"GET /v1/models": listing("a"), CHAT: Answer({"error": "x"}, 500)}, "llm_unavailable.server"),
    ],
)
def test_each_failure_says_what_it_is(chat: ChatPage, table: dict[str, Answer], sentence: str) -> None:
    """A web page, a wanted key, no models, no JSON, a failing server: five sentences, none of them the server's own."""
    with routes(table) as running:
        check(chat.page, f"{running.url}/v1")
        server = running.url.removeprefix("http://")
        words = SENTENCES.t(f"errors.{sentence}", server=server, status=500)
        expect(chat.page.locator(".test-result-failed strong")).to_have_text(words)
    expect(chat.page.get_by_label("Address", exact=True)).to_have_value(f"{running.url}/v1")
    chat.is_harmless()


def test_a_server_that_is_down_says_so_and_what_to_try(chat: ChatPage) -> None:
    """The commonest failure, with the first thing to look at."""
    port = free_port()
    check(chat.page, f"http://127.0.0.1:{port}/v1")
    result = chat.page.locator(".test-result-failed")
    expect(result).to_contain_text(f"Nothing answers at 127.0.0.1:{port}. Is the model server running?")
    expect(result).to_contain_text("Start it, or check host and port.")


def test_an_address_that_is_none_is_said_beside_the_field(chat: ChatPage) -> None:
    """The browser's own check is passed by this one; the server's is not."""
    check(chat.page, "http://h:1/v1?key=x")
    expect(chat.page.locator("#base-url-hint")).to_have_text(SENTENCES.t("errors.setting_invalid.query"))
    expect(chat.page.get_by_label("Address", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(chat.page.locator("#page-error")).to_be_hidden()


def test_a_forgotten_v1_is_one_click_away(chat: ChatPage, ollama: Running) -> None:
    """The address that works is offered and tested with one click."""
    check(chat.page, ollama.url)
    chat.page.get_by_role("button", name=f"Use {ollama.url}/v1").click()
    expect(chat.page.locator("#test-result")).to_contain_text("Connected.")
    expect(chat.page.get_by_label("Address", exact=True)).to_have_value(f"{ollama.url}/v1")


@dataclass(frozen=True)
class Served:
    """A Docent in a thread of this process, for what a setting can't say."""

    url: str


@contextmanager
def served(data_dir: Path, ports: tuple[int, ...]) -> Iterator[Served]:
    """A Docent at the first of `ports`, which looks for model servers at all of them."""
    settings = Settings(_env_file=None, data_dir=data_dir, port=ports[0])  # type: ignore[call-arg]
    servers: list[uvicorn.Server] = []

    def run() -> None:  # made here, because the browser's driver keeps an event loop in the main thread
        app = create_app(settings, discovery_ports=ports)
        servers.append(uvicorn.Server(uvicorn.Config(app, port=ports[0], log_config=None, ws="none")))
        servers[0].run()

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while not (servers and servers[0].started):
        assert time.monotonic() < deadline, "Docent did not start"
        time.sleep(0.05)
    try:
        yield Served(f"http://127.0.0.1:{ports[0]}")
    finally:
        servers[0].should_exit = True
        thread.join(15)


@pytest.fixture
def searching(tmp_path: Path, ollama: Running) -> Iterator[Served]:
    """A Docent that asks its own port, Ollama's and a silent one."""
    with served(tmp_path / "data", (free_port(), ollama.port, free_port())) as running:
        yield running


def test_servers_on_this_machine_are_found_without_docent_itself(
    searching: Served, open_page: OpenPage, ollama: Running
) -> None:
    """All ports are asked but Docent's own; one click tests, fills in and saves."""
    chat = open_page(searching)
    chat.open("/settings")
    page = chat.page
    page.get_by_role("button", name="Find model servers on this machine").click()
    found = page.locator(".servers li")
    expect(found).to_have_count(1)
    expect(found).to_contain_text("Ollama 0.12.6 · 2 models")
    page.get_by_role("button", name=f"Connect http://localhost:{ollama.port}/v1").click()
    expect(page.get_by_text("Saved. The next question goes to qwen3:8b.")).to_be_visible()
    expect(page.locator("#test-result")).to_contain_text("8,192 tokens")
    page.reload()
    expect(page.get_by_label("Address", exact=True)).to_have_value(f"http://localhost:{ollama.port}/v1")


def test_the_key_is_written_and_never_shown(chat: ChatPage, ollama: Running) -> None:
    """The last four characters tell which one it is; the page, its source and the API hold no more."""
    page = chat.page
    check(page, f"{ollama.url}/v1")
    expect(page.locator("#test-result")).to_contain_text("Connected.")
    page.get_by_label("API key", exact=True).fill(KEY)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("A key ending in 6789 is saved.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("API key", exact=True)).to_have_value("")
    assert KEY not in page.content()
    assert KEY not in page.request.get("/api/settings").text()
    check(page, f"{ollama.url}/v1")
    expect(page.locator("#test-result")).to_contain_text("Connected.")
    assert ollama.seen[-1][1].get("Authorization", ollama.seen[-1][1].get("authorization")) == f"Bearer {KEY}"
    page.get_by_label("Remove the saved key").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#key-hint")).to_have_text("Leave empty if the server wants none.")
    page.get_by_role("button", name="Remove the model").click()
    expect(page.get_by_text("Questions are answered with quotes again.")).to_be_visible()


def test_the_environment_locks_its_fields(start_server: StartServer, open_page: OpenPage, mock_llm: MockLlm) -> None:
    """Dashed, with a lock and the variable's name; the page can test what it can't change."""
    server = start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model", LLM_API_KEY=KEY)
    chat = open_page(server)
    chat.open("/settings")
    page = chat.page
    for label in ("Address", "Model", "API key"):
        expect(page.get_by_role("textbox", name=label, exact=True)).not_to_be_editable()
    expect(page.get_by_text("Set by LLM_BASE_URL in the environment, so it can't be changed here.")).to_be_visible()
    assert KEY not in page.content()
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#test-result")).to_contain_text("Connected. mock-model answered")


def test_the_theme_is_chosen_and_kept(chat: ChatPage) -> None:
    """Light and dark whatever the system says, after a reload, too."""
    page = chat.page
    page.get_by_role("radio", name="Dark").check()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    page.get_by_role("radio", name="As the system").check()
    page.reload()
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")


def test_settings_fit_a_phone(server: ServerProcess, open_page: OpenPage) -> None:
    """At 390 and 320 nothing scrolls sideways; buttons are big enough for a thumb."""
    for width in (390, 320):
        chat = open_page(server, width=width, height=800)
        chat.open("/settings")
        check(chat.page, f"http://127.0.0.1:{free_port()}/v1")
        expect(chat.page.locator(".test-result-failed")).to_be_visible()
        chat.has_no_sideways_scroll()
        for name in ("Test connection", "Save", "Find model servers on this machine"):
            box = chat.page.get_by_role("button", name=name).bounding_box()
            assert box is not None
            assert box["height"] >= 44, name
