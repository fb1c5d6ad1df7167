"""The tools are those that models know from coding harnesses, each works through the page, and none of them leaks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage
from tests.e2e.mock_llm import MockLlm, Record
from tests.e2e.mock_tools import MARKUP
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

SUBJECT = "when does the nightly backup job start?"
ARGUMENTS = {
    "read": ["path", "offset", "limit"],
    "ls": ["path"],
    "grep": ["pattern", "path", "glob", "ignoreCase", "context", "limit"],
    "find": ["pattern", "path"],
    "search": ["query", "k"],
}
REQUIRED = {"read": ["path"], "ls": [], "grep": ["pattern"], "find": ["pattern"], "search": ["query"]}
CAP = 6
HOSTILE = "Zebra rota: <img src=x onerror=window.__x=1> <script>window.__x = 2</script> ends here."

WATCH_ALL = """
window.__page = "";
new MutationObserver(() => { window.__page += document.body?.textContent + "\\n"; })
  .observe(document, { subtree: true, childList: true, characterData: true });
"""


@pytest.fixture
def chat(
    docent: ServerProcess, open_page: OpenPage, documents: Path, mock_llm: MockLlm, tmp_path: Path
) -> Iterator[ChatPage]:
    """A page that remembers every text it ever held, on a library with a hostile document; at the end nothing ran."""
    mock_llm.app.records.clear()
    hostile = tmp_path / "rota.md"
    hostile.write_text(f"# Rota\n\n{HOSTILE}\n", "utf-8")
    page = open_page(docent)
    page.page.add_init_script(WATCH_ALL)
    page.open()
    page.has_read([*sorted(documents.iterdir()), hostile])
    yield page
    page.is_harmless()


def functions(request: Record) -> dict[str, dict[str, Any]]:
    """The functions that a request offers, by name."""
    return {tool["function"]["name"]: tool["function"] for tool in request.body["tools"]}


def results(mock_llm: MockLlm) -> list[str]:
    """The tool results of the last request."""
    return [message["content"] for message in mock_llm.requests[-1].body["messages"] if message["role"] == "tool"]


def test_the_tools_offered_have_the_names_and_arguments_that_models_know(chat: ChatPage, mock_llm: MockLlm) -> None:
    """Five read-only tools, in OpenAI's shape, with these arguments and no others."""
    chat.ask(f"e2e-read {SUBJECT}")
    chat.until_settled()
    offered = functions(mock_llm.requests[0])
    assert {name: list(tool["parameters"]["properties"]) for name, tool in offered.items()} == ARGUMENTS
    assert {name: tool["parameters"].get("required", []) for name, tool in offered.items()} == REQUIRED
    assert all(tool["description"] for tool in offered.values())
    assert {tool["type"] for tool in mock_llm.requests[0].body["tools"]} == {"function"}


def test_every_tool_works_through_the_page(chat: ChatPage, mock_llm: MockLlm) -> None:
    """One turn that lists, finds, greps, searches and reads: a ticked line each, in that order."""
    chat.ask(f'e2e-tools "backup" {SUBJECT}')
    chat.expect_answer("starts at 02:00")
    names = chat.turn.locator(".tool .tool-name").evaluate_all("(names) => names.map((name) => name.textContent)")
    assert names == ["search", "ls", "find", "grep", "search", "read"]
    expect(chat.turn.locator(".tool.wrong")).to_have_count(0)
    listed, found, matched, searched, read = results(mock_llm)
    assert "backup-plan.md" in listed
    assert "backup-plan.md" in found
    assert "nightly backup job" in matched
    assert searched.startswith("The passages that fit best.")
    assert "backup-plan.md" in read


@pytest.mark.parametrize(
    "trigger", ["e2e-read", "e2e-tools", "e2e-loop", "e2e-cap", "e2e-bad-calls", "e2e-scaffold-once"]
)
def test_every_request_has_one_system_message_and_a_turn_is_bounded(
    chat: ChatPage, mock_llm: MockLlm, trigger: str
) -> None:
    """At most the cap, one forced answer and one recovery; calls and results pair up, as servers demand."""
    chat.ask(f"{trigger} {SUBJECT}")
    chat.until_settled()
    expect(chat.turn.get_by_role("alert")).to_have_count(0)
    assert 1 <= len(mock_llm.requests) <= CAP + 2
    for request in mock_llm.requests:
        messages = request.body["messages"]
        assert [message["role"] for message in messages].count("system") == 1
        assert messages[0]["role"] == "system"
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        assert calls == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert len(set(calls)) == len(calls)
        for message in messages:
            for call in message.get("tool_calls") or ():
                json.loads(call["function"]["arguments"])


def test_what_a_tool_returned_is_never_shown_as_such(chat: ChatPage, mock_llm: MockLlm) -> None:
    """The page tells what was looked up and what came of it, not the text that went to the model."""
    chat.ask(f'e2e-tools "backup" {SUBJECT}')
    chat.until_settled()
    seen = chat.page.evaluate("window.__page")
    for result in results(mock_llm):
        assert result.splitlines()[0] not in seen
    assert "=== passage" not in seen
    assert "tool_call" not in seen


def test_markup_in_arguments_and_results_stays_text(chat: ChatPage) -> None:
    """In the lines, in the answer, live and after a reload: no element comes of it, nothing runs."""
    chat.ask(f"e2e-bad-calls {SUBJECT}")
    chat.until_settled()
    expect(chat.turn.locator(".tool-args").filter(has_text=MARKUP)).to_have_count(2)
    chat.ask('e2e-grep "zebra" what is the zebra rota?')
    chat.until_settled()
    expect(chat.turn.locator(".tool-name").last).to_have_text("grep")
    for _ in range(2):
        expect(chat.page.locator("#turns img, #turns script")).to_have_count(0)
        chat.is_harmless()
        chat.page.reload()
