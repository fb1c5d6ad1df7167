"""How the mock model answers: a table from a trigger in the last user message to a flow.

A flow is an async generator of deltas; adding a row is adding a function under `@flow("e2e-…")`. `Refuse`, raised
before the first delta, is another HTTP answer; `Cut` ends the connection in the middle. The server is
`tests/e2e/mock_llm.py`.
"""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.rag.prompts import DEFLECT_MARKER, GivenPassage, parse_passages, parse_question
from app.rag.whole_prompts import parse_notes

Delta = dict[str, Any]
"""The `delta` of one chunk; an empty one opens the stream without a token."""

MARKUP = "<|channel|>final <script>alert(1)</script> <tool_call>"
"""What `e2e-500-markup` quotes; it must never reach a page."""

SLOW_RATE = 20.0
SLOW_WORDS = 400

COLD_S = 8.0
"""How long `e2e-cold` takes to load; a reader is told after five seconds."""

THOUGHTS = " ".join(f"Thought {number}: **raw** <b>markup</b> stays." for number in range(1, 13))
"""What `e2e-think-slow` thinks."""


class Cut(Exception):
    """The connection breaks here."""


@dataclass
class Refuse(Exception):
    """An answer that is no stream."""

    status: int
    body: str
    kind: str = "application/json"
    retry_after: int | None = None


@dataclass(frozen=True)
class Call:
    """One chat request. `nth` counts requests with this same question, from 1; `rate` is tokens a second, 0 for all at
    once."""

    messages: list[dict[str, Any]]
    body: dict[str, Any]
    nth: int
    rate: float

    @property
    def question(self) -> str:
        return parse_question(self.messages)

    @property
    def system(self) -> str:
        return "\n".join(str(m.get("content")) for m in self.messages if m.get("role") == "system")


Flow = Callable[[Call], AsyncIterator[Delta]]
FLOWS: dict[str, Flow] = {}


def flow(trigger: str) -> Callable[[Flow], Flow]:
    """Adds a row to the table."""

    def add(function: Flow) -> Flow:
        FLOWS[trigger] = function
        return function

    return add


def choose(call: Call) -> Flow:
    """The flow of the longest trigger in the question, else the plain one."""
    found = [trigger for trigger in FLOWS if trigger in call.question]
    return FLOWS[max(found, key=len)] if found else plain


async def say(text: str, rate: float, key: str = "content") -> AsyncIterator[Delta]:
    """`text` in tokens of a word each, `rate` a second by an absolute schedule, so that lag does not add up."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number, token in enumerate(re.findall(r"\s*\S+|\s+$", text)):
        if rate:
            await asyncio.sleep(begun + number / rate - loop.time())
        yield {key: token}


def answer(call: Call) -> str:
    """What the passages say, quoted and cited, or what notes on a document do; without either, that there is
    nothing."""
    if DEFLECT_MARKER in call.system:
        return "The documents in this library hold nothing about that."
    if notes := parse_notes(call.messages):
        return " ".join(note.text for note in notes)
    passages = parse_passages(call.messages)
    if not passages:
        return f"This is an answer without documents to: {call.question[:80]}"
    return quoted(call.question, passages)


def quoted(question: str, passages: Sequence[GivenPassage]) -> str:
    """The best sentences of the two best passages, cited."""
    words = set(re.findall(r"\w{3,}", question.lower()))
    quotes: list[tuple[int, int, str]] = []
    for passage in passages:
        sentences = [found for line in passage.text.splitlines() for found in re.split(r"(?<=[.!?])\s+", line.strip())]
        scored = [
            (len(words & set(re.findall(r"\w{3,}", one.lower()))), one)
            for one in sentences
            if len(one) > 20 and one[0] != "#"
        ]
        best, sentence = max(scored, default=(0, passage.text.strip()[:200]))
        quotes.append((best, passage.n, sentence.rstrip(".!?:;, ")))
    best_first = sorted(quotes, key=lambda quote: (-quote[0], quote[1]))[:2]
    return " ".join(f"{sentence} [{n}]." for _, n, sentence in sorted(best_first, key=lambda quote: quote[1]))


async def plain(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(answer(call), call.rate):
        yield delta


@flow("e2e-slow")
async def _slow(call: Call) -> AsyncIterator[Delta]:
    words = " ".join(f"word {number}" for number in range(1, SLOW_WORDS // 2 + 1))
    async for delta in say(f"Slowly, {words}.", call.rate or SLOW_RATE):
        yield delta


@flow("e2e-endless")
async def _endless(call: Call) -> AsyncIterator[Delta]:
    """As slow as the slow one, until whoever asked is gone: for what has to happen before an answer ends."""
    for number in itertools.count(1):
        async for delta in say(f" word {number}", call.rate or SLOW_RATE):
            yield delta
        await asyncio.sleep(1 / (call.rate or SLOW_RATE))


@flow("e2e-silent")
async def _silent(call: Call) -> AsyncIterator[Delta]:
    yield {}
    await asyncio.Event().wait()


@flow("e2e-think")
async def _think(call: Call) -> AsyncIterator[Delta]:
    async for delta in say("The passages answer this; the first one says it.", call.rate, "reasoning_content"):
        yield delta
    async for delta in plain(call):
        yield delta


@flow("e2e-think-slow")
async def _think_slowly(call: Call) -> AsyncIterator[Delta]:
    async for delta in say(THOUGHTS, call.rate or SLOW_RATE, "reasoning_content"):
        yield delta
    async for delta in say(answer(call), call.rate or SLOW_RATE):
        yield delta


@flow("e2e-cold")
async def _cold(call: Call) -> AsyncIterator[Delta]:
    yield {}
    await asyncio.sleep(COLD_S)
    async for delta in plain(call):
        yield delta


@flow("e2e-429-once")
async def _limited_once(call: Call) -> AsyncIterator[Delta]:
    if call.nth % 2:
        raise Refuse(429, '{"error": {"message": "slow down"}}', retry_after=2)
    async for delta in plain(call):
        yield delta


@flow("e2e-503-once")
async def _busy_once(call: Call) -> AsyncIterator[Delta]:
    if call.nth % 2:  # so that the same question, asked again, meets it again
        raise Refuse(503, '{"error": {"message": "no slot is free"}}')
    async for delta in plain(call):
        yield delta


@flow("e2e-503-always")
async def _busy(call: Call) -> AsyncIterator[Delta]:
    raise Refuse(503, '{"error": {"message": "no slot is free"}}')
    yield {}


@flow("e2e-drop")
async def _drop(call: Call) -> AsyncIterator[Delta]:
    async for delta in say("The beginning of an answer that", call.rate):
        yield delta
    await asyncio.sleep(0.05)
    raise Cut


@flow("e2e-html")
async def _html(call: Call) -> AsyncIterator[Delta]:
    raise Refuse(200, "<!doctype html><title>Sign in</title><p>Sign in to go on</p>", "text/html")
    yield {}


@flow("e2e-500-markup")
async def _markup(call: Call) -> AsyncIterator[Delta]:
    raise Refuse(500, '{"error": {"message": "Failed to parse: ' + MARKUP.replace('"', "'") + '"}}')
    yield {}


MARKDOWN = """\
## What to do

Run these, in this order, and read what they print [1].

1. Look at the **state** of the service.
2. Restart it with `systemctl restart example`.
   - A nested point.

| Command | What it does |
| --- | ---: |
| `ls -l` | lists files |
| `df -h` | shows what is free |

```bash
# a block of code
if [ "$a" -lt 3 ]; then echo "<b>not bold</b>"; fi
```

> A quotation over
> two lines.

A [good link](https://example.org/page), a [hostile one](javascript:alert(document.domain)) and an image
![tracking pixel](https://evil.example/pixel.png) that must not load. <img src=x onerror=alert(1)>

The last paragraph stands here [1].
"""


@flow("e2e-md")
async def _markdown(call: Call) -> AsyncIterator[Delta]:
    for start in range(0, len(MARKDOWN), 7):
        if call.rate:
            await asyncio.sleep(1 / call.rate)
        yield {"content": MARKDOWN[start : start + 7]}
