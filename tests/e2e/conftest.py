"""Fixtures of the browser tests: Chromium, the mock model, the real server, and a page that watches what it does.

Nothing is patched: the server is a process, the model is a socket, the reader is a browser. When a test fails, the
server's log is part of the report.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("DOCENT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "/usr/bin/chromium")
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

StartServer = Callable[..., ServerProcess]
OpenPage = Callable[..., ChatPage]

LOG_CHARS = 6000

_running: list[ServerProcess] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Puts the end of the servers' logs into the report of a test that failed."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {server.url}", server.log()[-LOG_CHARS:]) for server in _running]
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module: while it runs, its event loop does too, and other tests would seem to be inside it."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no browser at {CHROMIUM} (set DOCENT_CHROMIUM)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def mock_llm() -> Iterator[MockLlm]:
    """A model server on a real socket."""
    with MockLlm() as server:
        yield server


@pytest.fixture(scope="module")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """`start_server(LLM_BASE_URL=…)` gives a running Docent with an empty data folder."""
    with ExitStack() as stack:

        def start(**environment: str) -> ServerProcess:
            server = stack.enter_context(ServerProcess(tmp_path_factory.mktemp("docent"), **environment))
            _running.append(server)
            stack.callback(_running.remove, server)
            return server

        yield start


@pytest.fixture(scope="module")
def docent(start_server: StartServer, mock_llm: MockLlm) -> ServerProcess:
    """A Docent that is connected to the mock model; the tests of a module share it."""
    return start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model")


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """`open_page(server, width=…, height=…)` gives a `ChatPage` in a context of its own."""
    contexts: list[BrowserContext] = []

    def open_at(server: ServerProcess, *, width: int = 1280, height: int = 800) -> ChatPage:
        context = browser.new_context(
            base_url=server.url, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(15_000)
        return ChatPage(context.new_page(), server.url)

    yield open_at
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few small documents to ask about."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "backup-plan.md").write_text(BACKUP_PLAN, "utf-8")
    (folder / "router.md").write_text(ROUTER, "utf-8")
    return folder


BACKUP_PLAN = """# Backup plan

## Nightly jobs

The nightly backup job to the storage box starts at 02:00 and is done before 03:30 unless the photos grew.
It keeps seven daily snapshots and four weekly snapshots of every machine.

## Restore test

Once a quarter one directory is restored to a spare disk and compared with its source.
The last restore test took eleven minutes.
"""

ROUTER = """# Router

## Port forwards

Syncthing needs 22000/TCP and 22000/UDP forwarded to the machine that runs it.
The VPN listens on 51820/UDP. Nothing else is reachable from outside.
"""
