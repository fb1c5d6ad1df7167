"""Tool calls from fragments: the shapes that servers send all give the same calls."""

import json
from typing import Any

import pytest

from app.rag.pieces import ToolCallPiece
from app.rag.sse_reader import SseReader, ToolDelta


def feed(deltas: list[Any]) -> tuple[list[ToolCallPiece], list[Any]]:
    reader = SseReader()
    events: list[Any] = []
    for delta in deltas:
        payload = {"choices": [{"delta": {"tool_calls": [delta]}}]}
        events += reader.feed(b"data: " + json.dumps(payload).encode() + b"\n\n")
    return reader.tool_calls(), events


def tool(index: int | None = None, identity: str | None = None, name: str | None = None, args: Any = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    fields = {"index": index, "id": identity, "function": function or None}
    return {key: value for key, value in fields.items() if value is not None}


TWO = [("a", "read", '{"p":1}'), ("b", "grep", '{"q":2}')]
READ, GREP = ("a", "read"), ("b", "grep")
SHAPES: dict[str, list[Any]] = {
    "openai": [
        tool(0, *READ, ""), tool(0, args='{"p"'), tool(0, args=":1}"), tool(1, *GREP, ""), tool(1, args='{"q":2}')],
    "interleaved": [
        tool(0, *READ), tool(1, *GREP), tool(0, args='{"p":'), tool(1, args='{"q":2}'), tool(0, args="1}")],
    "no index": [tool(None, *READ, '{"p":1}'), tool(None, *GREP, '{"q":2}')],
    "no index, split": [tool(None, *READ, '{"p"'), tool(args=":1}"), tool(None, *GREP), tool(args='{"q":2}')],
    "index 0 for all": [tool(0, *READ, '{"p":1}'), tool(0, *GREP, '{"q"'), tool(0, args=":2}")],
    "id in every fragment": [
        tool(0, *READ), tool(0, "a", None, '{"p":1}'), tool(1, *GREP), tool(1, "b", None, '{"q":2}')],
    "id wins over index": [tool(0, *READ, '{"p"'), tool(1, *GREP, '{"q":2}'), tool(1, "a", None, ":1}")],
    "id late": [
        tool(0, None, "read"), tool(0, "a", None, '{"p":1}'), tool(1, None, "grep"), tool(1, "b", None, '{"q":2}')],
    "name repeated": [tool(0, *READ, '{"p"'), tool(0, *READ, ":1}"), tool(1, *GREP, '{"q":2}')],
    "arguments as objects": [tool(0, *READ, {"p": 1}), tool(1, *GREP, {"q": 2})],
    "second first": [tool(1, *GREP, '{"q":2}'), tool(0, *READ, '{"p":1}')],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_tool_calls_are_put_together_whatever_the_server_leaves_out(shape: str) -> None:
    """S7: by id, then index, then the current call."""
    calls, events = feed(SHAPES[shape])
    found = [(call.index, call.id, call.name, json.loads(call.arguments)) for call in calls]
    assert found == [(n, identity, name, json.loads(args)) for n, (identity, name, args) in enumerate(TWO)]
    assert set(events) == {ToolDelta()}


def test_tool_calls_without_ids_get_some() -> None:
    """S7: neither id nor index: a new name after whole arguments is a new call; missing arguments are `{}`."""
    deltas = [tool(name="read", args='{"p":1}'), tool(name="read", args='{"p":2}'), tool(0, name="grep")]
    calls, _ = feed(deltas)
    found = {(call.id, call.name, call.arguments) for call in calls}
    assert {name for _, name, _ in found} == {"read", "grep"}
    assert {args for _, _, args in found} == {'{"p":1}', '{"p":2}', "{}"}
    assert len({identity for identity, _, _ in found}) == 3


def test_an_old_function_call_is_a_tool_call() -> None:
    """`function_call` fragments are read as one call."""
    parts = [{"name": "read", "arguments": '{"a"'}, {"arguments": ":1}"}]
    reader = SseReader()
    for part in parts:
        reader.feed(b"data: " + json.dumps({"choices": [{"delta": {"function_call": part}}]}).encode() + b"\n\n")
    assert [(call.name, call.arguments) for call in reader.tool_calls()] == [("read", '{"a":1}')]


def test_a_name_repeated_in_every_fragment_without_ids_is_one_call() -> None:
    """S7: the name alone does not start a new call while the arguments are unfinished."""
    calls, _ = feed([tool(0, name="read", args='{"p"'), tool(0, name="read", args=":1}")])
    assert calls == [ToolCallPiece(0, "call_0", "read", '{"p":1}')]


def test_thousands_of_calls_find_their_own_fragments() -> None:
    """A model run wild: the fragments of all calls interleaved, some named by index, some by id."""
    many = 3000
    begun = [tool(n, f"c{n}", "read", '{"p":') for n in range(many)]
    ended = [tool(n, None, None, f"{n}}}") if n % 2 else tool(None, f"c{n}", None, f"{n}}}") for n in range(many)]
    calls, _ = feed([*begun, *reversed(ended)])
    assert [(call.id, call.arguments) for call in calls] == [(f"c{n}", f'{{"p":{n}}}') for n in range(many)]
