"""JSON that was written in ASCII is found by its words, and stays the same JSON."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.extract.json_text import with_letters
from tests.unit.ingest.files import put, read


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ipynb"])
def test_escaped_letters_are_read_as_letters(tmp_path: Path, name: str) -> None:
    """Most programs write JSON in ASCII: words of any language are words, pairs are one sign."""
    text = json.dumps({"gruß": "Größe Привет 日本 😀"}) + "\n"

    assert "gruß" not in text
    assert "Größe Привет 日本 😀" in read(put(tmp_path, name, text.encode())).text


def test_another_kind_of_file_keeps_its_escapes(tmp_path: Path) -> None:
    """They are what its author wrote."""
    assert read(put(tmp_path, "a.py", b'x = "\\u00fc"\n')).text.strip() == 'x = "\\u00fc"'


@pytest.mark.parametrize("text", ['"\\u0022 \\u005c \\u000a"', '"\\\\u00fc"', '"\\ud83d x"', '"\\u12"', '"\\u200b"'])
def test_what_json_has_to_escape_stays_as_it_is(text: str) -> None:
    """Quotes, strokes and controls; a stroke before a u; half a pair, half an escape; what can't be seen."""
    assert with_letters(text) == text


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_it_is_the_same_json(value: object) -> None:
    """Whatever stands in it."""
    assert json.loads(with_letters(json.dumps(value))) == value
