"""One batch has one name, however its calls and their arguments are ordered."""

import json
import re
from typing import Any

import pytest

from app.guard.signature import batch_signature, bounded, call_signature, canonical_json, canonical_text

PLAIN = {"path": "a.md", "limit": 20, "deep": {"b": [1, 2], "a": None}}
SHUFFLED = {"deep": {"a": None, "b": [1, 2]}, "limit": 20, "path": "a.md"}


def nested(levels: int, inmost: Any) -> Any:
    value = inmost
    for _ in range(levels):
        value = {"in": value}
    return value


def test_S1_a_call_is_its_name_and_sixteen_hex_digits() -> None:
    """The form is fixed: a log and a note show it."""
    assert re.fullmatch(r"read:[0-9a-f]{16}", call_signature("read", json.dumps(PLAIN)))


def test_S1_the_order_of_calls_and_of_keys_plays_no_part() -> None:
    """Keys are sorted at every level, calls in the batch."""
    one = [call_signature("read", json.dumps(PLAIN)), call_signature("ls", "{}")]
    other = [call_signature("ls", " { } "), call_signature("read", json.dumps(SHUFFLED, indent=3))]

    assert batch_signature(one) == batch_signature(other)
    assert "|" in batch_signature(one)


def test_S1_the_order_of_a_list_and_every_value_count() -> None:
    """Other arguments are another call."""
    signatures = {
        call_signature("read", text)
        for text in ('{"a":[1,2]}', '{"a":[2,1]}', '{"a":["1","2"]}', '{"a":[1.5,2]}', '{"a":null}', "{}", '"{}"')
    }

    assert len(signatures) == 7


def test_arguments_as_a_value_and_as_text_are_the_same_call() -> None:
    """Clients send either."""
    assert call_signature("read", SHUFFLED) == call_signature("read", json.dumps(PLAIN))


@pytest.mark.parametrize("text", ["", "{", "path=a", "\ud800", "NaN,", "[" * 5000])
def test_text_that_is_no_json_stands_for_itself(text: str) -> None:
    """As a JSON string, so that it differs from a value of the same spelling."""
    assert call_signature("read", text) == f"read:{call_signature('', json.dumps(text))[1:]}"


@pytest.mark.parametrize(("levels", "cut"), [(15, False), (16, True), (17, True)])
@pytest.mark.parametrize("as_text", [True, False])
def test_S2_what_lies_sixteen_deep_is_cut(levels: int, cut: bool, as_text: bool) -> None:
    """A difference at the limit or below it is invisible."""
    one, other = nested(levels, "left"), nested(levels, "right")
    canonical = [canonical_text(json.dumps(v)) if as_text else canonical_json(v) for v in (one, other)]

    assert (b'"..."' in canonical[0]) is cut
    assert (canonical[0] == canonical[1]) is cut


def test_a_thousand_levels_are_cut_like_seventeen() -> None:
    """Depth costs nothing."""
    assert canonical_json(nested(1000, 1)) == canonical_json(nested(17, 2))
    assert canonical_text(json.dumps(nested(900, 1))) == canonical_text(json.dumps(nested(17, 2)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"n":123456789012345678901}', '{"n":123456789012345678902}'),
        ('{"s":"\\ud800"}', '{"s":"\\ud801"}'),
        ('{"n":18446744073709551616}', '{"n":18446744073709551617}'),
    ],
)
def test_what_the_fast_parser_would_confuse_stays_apart(one: str, other: str) -> None:
    """Long integers and half surrogate pairs differ where they differ."""
    assert canonical_text(one) != canonical_text(other)
    assert canonical_text(one) == canonical_text(f" {one} ")


def test_a_number_of_too_many_digits_stands_for_itself() -> None:
    """Python refuses to parse it; the text is compared."""
    assert canonical_text("9" * 5000) != canonical_text("9" * 5001)


@pytest.mark.parametrize("name", ["r" * 5000, "прочитать" * 600, "文" * 5000])
def test_M37_a_long_signature_is_cut_at_240_characters(name: str) -> None:
    """Of any alphabet, with a sign that it was cut."""
    cut = bounded(f"{name}:0123456789abcdef")

    assert cut == f"{name[:240]}…"


def test_M37_a_signature_of_240_characters_is_whole() -> None:
    """The cut begins behind the limit."""
    assert bounded("r" * 240) == "r" * 240


def test_M37_a_signature_in_a_sentence_is_plain_text() -> None:
    """Client-chosen names bring neither syntax nor line breaks nor half surrogate pairs into a note."""
    assert bounded('<tool_call>\n{"a"}\ud800[x]:0f') == "_tool_call____a____x_:0f"
