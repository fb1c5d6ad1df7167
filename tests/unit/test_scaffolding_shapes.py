"""What the scaffolding filter takes for a call: bodies without an end, names, closers inside JSON; its automaton."""

import pytest

from app.rag.scaffolding_formats import REGISTRY
from app.rag.scaffolding_visible import build_automaton
from tests.unit.filtering import START, seen


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<|channel|>commentary to=f.g and so on", ""),
        ("<|channel|>commentary t", ""),
        ("<|channel|>commentary is a channel", " is a channel"),
        ("<|tool_call>\n cal", ""),
        ("<|tool_call>\n called once", "\n called once"),
        (f"{START}<f>}} words", ""),
        (f'{START}{{"a": "}}"}} words', " words"),
        ("<|tool_call_begin|>f:0" + " and more" * 8000, ""),
        ("<|tool_call_begin|>f:", ""),
        ('<|tool_call_begin|>"quoted" words', '"quoted" words'),
        ("<|tool_call_begin|>f and more words", "f and more words"),
        ("<tool_call>f</arg_value> words", " words"),
        ("<tool_call>f<arg_key>a</arg_key> words", ""),
        ('<tool_call>{"a": [1</tool_call> words', " words"),
        ('<tool_call>{"a": "</tool_call>"} words', " words"),
        ('<tool_call>{"a": "\\"}</tool_call>"} words', " words"),
        ('<tool_call>{"a": "\\\\"} words', " words"),
        ('[Calling tool: f({"a": [1, 2], "b": 3})] words', " words"),
        ("[Calling tool: f] words", "[Calling tool: f] words"),
        ('```\nx\n```\n```\n<tool_call>{"a": 1}', '```\nx\n```\n```\n<tool_call>{"a": 1}'),
    ],
)
def test_a_call_is_known_by_its_shape(text: str, visible: str) -> None:
    """In one chunk, in two, and in small ones."""
    assert seen(text) == visible
    assert seen(*[text[at : at + 3] for at in range(0, len(text), 3)]) == visible
    for cut in range(min(len(text), 60)):
        assert seen(text[:cut], text[cut:]) == visible


def test_the_automaton_knows_every_token_behind_any_other_beginning() -> None:
    """Its state after any text is the longest suffix that begins a token; a whole token names its entry."""
    root = build_automaton(REGISTRY)
    starts = [entry.start for entry in REGISTRY]
    begins = {start[:length] for start in starts for length in range(len(start) + 1)}
    for first in starts:
        for entry in REGISTRY:
            text, node = first[: len(first) // 2] + entry.start, root
            for at, char in enumerate(text, 1):
                node = node.next.get(char, root)
                assert node.depth == max(length for length in range(at + 1) if text[at - length : at] in begins)
            assert node.entry is entry
