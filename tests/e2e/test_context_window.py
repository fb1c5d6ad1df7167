"""What does not fit the model's window is said where the answer stands, and on its receipt."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.mock_llm import MockLlm

BACKUP = "When does the nightly backup job start?"


def test_a_small_window_says_how_many_passages_fit(
    start_server: StartServer, mock_llm: MockLlm, open_page: OpenPage, documents: Path
) -> None:
    """Under the question with the number found, and on the receipt with what was left out and whose window it is."""
    small = {"LLM_BASE_URL": mock_llm.base_url, "LLM_MODEL": "mock-model", "LLM_CONTEXT_TOKENS": "512"}
    chat = open_page(start_server(**small))
    chat.open()
    chat.has_read(sorted(documents.iterdir()))
    chat.ask(BACKUP)
    chat.until_settled()
    expect(chat.turn.locator(".given")).to_contain_text(re.compile(r"1 of ([2-9]|1[0-2]) passages fit"))
    chat.page.goto(f"{chat.page.url.split('/chats')[0]}/turns/{chat.turn.get_attribute('data-turn')}")
    notes = chat.page.locator(".receipt-note")
    expect(notes.filter(has_text=re.compile(r"1 of \d+ passages fit the model's window"))).to_be_visible()
    expect(notes.filter(has_text="The window is LLM_CONTEXT_TOKENS.")).to_be_visible()
    chat.is_harmless()
