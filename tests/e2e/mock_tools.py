"""Flows of the mock model that call tools, natively. Imported by `tests.e2e.mock_llm`.

Each one calls only while tools are offered and answers, cited, from everything it has been shown.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from app.rag.prompts import GivenPassage, parse_passages
from tests.e2e.mock_flows import Call, Delta, flow, plain, quoted, say

MARKUP = "<img src=x onerror=window.__x=1>"
"""Stands in the arguments of bad calls; it must never become an element."""

TALK = "First a look into the file."


def are_tools_offered(call: Call) -> bool:
    return bool(call.body.get("tools"))


def results(call: Call) -> list[str]:
    """The tool results of this turn, oldest first."""
    return [str(message["content"]) for message in call.messages if message.get("role") == "tool"]


def shown_by_tools(call: Call) -> list[GivenPassage]:
    """The passages of the results."""
    return parse_passages([{"role": "system", "content": "\n".join(results(call))}])


def calling(*calls: tuple[str, Mapping[str, Any] | str]) -> Iterator[Delta]:
    """Calls as servers stream them: each name first, then its arguments in parts; a text is sent as it is."""
    for index, (name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": f"mock_{index}", "type": "function", "function": function}]}
        for start in range(0, len(text), 16):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text[start : start + 16]}}]}


async def answering(call: Call) -> AsyncIterator[Delta]:
    """The answer: from what tools showed, or else from the prompt."""
    passages = shown_by_tools(call)
    if not passages:
        async for delta in plain(call):
            yield delta
        return
    async for delta in say(quoted(call.question, passages), call.rate):
        yield delta


async def steps(call: Call, *calls: tuple[str, Mapping[str, Any] | str]) -> AsyncIterator[Delta]:
    """One call a round in this order, then the answer."""
    done = len(results(call))
    if are_tools_offered(call) and done < len(calls):
        for delta in calling(calls[done]):
            yield delta
        return
    async for delta in answering(call):
        yield delta


def first_path(call: Call) -> str:
    """Where the best passage stands; any place, where there is none."""
    return next((f"/library/{passage.path}" for passage in parse_passages(call.messages)), "/library")


def word(call: Call) -> str:
    """What stands in quotes in the question."""
    found = re.search(r'"([^"]+)"', call.question)
    return found.group(1) if found else "backup"


@flow("e2e-read")
async def _read(call: Call) -> AsyncIterator[Delta]:
    async for delta in steps(call, ("read", {"path": first_path(call)})):
        yield delta


@flow("e2e-read-talk")
async def _read_and_talk(call: Call) -> AsyncIterator[Delta]:
    if not results(call):
        async for delta in say(TALK, call.rate):
            yield delta
    async for delta in _read(call):
        yield delta


@flow("e2e-grep")
async def _grep(call: Call) -> AsyncIterator[Delta]:
    async for delta in steps(call, ("grep", {"pattern": word(call), "path": "/library"})):
        yield delta


@flow("e2e-tools")
async def _each_tool(call: Call) -> AsyncIterator[Delta]:
    path = first_path(call)
    calls = (
        ("ls", {}),
        ("find", {"pattern": path.rpartition("/")[2]}),
        ("grep", {"pattern": word(call), "glob": "*.md"}),
        ("search", {"query": call.question, "k": 3}),
        ("read", {"path": path, "offset": 1, "limit": 6}),
    )
    async for delta in steps(call, *calls):
        yield delta


@flow("e2e-loop")
async def _loop(call: Call) -> AsyncIterator[Delta]:
    async for delta in steps(call, *[("read", {"path": first_path(call)})] * 100):
        yield delta


@flow("e2e-requery")
async def _requery(call: Call) -> AsyncIterator[Delta]:
    """Asks for the same words in another order and case, again and again: near duplicates, no two alike."""
    words = re.findall(r"\w+", call.question.replace("e2e-requery", ""))
    turned = [" ".join((*words[at:], *words[:at])) for at in range(len(words))]
    async for delta in steps(call, *[("search", {"query": text.title()}) for text in turned]):
        yield delta


@flow("e2e-cap")
async def _cap(call: Call) -> AsyncIterator[Delta]:
    calls = [("grep", {"pattern": pattern}) for pattern in (word(call), *(f"word{n}" for n in range(1, 100)))]
    async for delta in steps(call, *calls):
        yield delta


@flow("e2e-bad-calls")
async def _bad_calls(call: Call) -> AsyncIterator[Delta]:
    if are_tools_offered(call) and not results(call):
        bad = (
            ("read", '{"path": "/library'),
            ("launch", {"target": MARKUP}),
            ("read", {"path": "../../etc/passwd"}),
            ("read", {"path": f"/library/{MARKUP}"}),
            ("grep", {"pattern": f"({MARKUP}"}),
        )
        for delta in calling(*bad):
            yield delta
        return
    async for delta in answering(call):
        yield delta
