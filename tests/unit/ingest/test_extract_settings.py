"""Configuration: shown line for line, parted at its own sections where there is no doubt."""

import json
from pathlib import Path

import pytest

from app.ingest.blocks import Extraction
from tests.unit.ingest.files import put, read


def taken(folder: Path, name: str, text: str) -> Extraction:
    return read(put(folder, name, text.encode()))


def sections(extraction: Extraction) -> list[tuple[int, str]]:
    for block in extraction.blocks:
        assert extraction.text[block.char_start : block.char_end] == block.text
    return [(block.level, block.label) for block in extraction.blocks if block.kind == "heading"]


FILLER = "".join(f"setting_{n} = value number {n}\n" for n in range(60))
NESTED = "".join(f"    option_{n}: value number {n}\n" for n in range(60))


def test_sections_of_a_long_file_are_headings(tmp_path: Path) -> None:
    """The lines stay those of the file; what stands before the first section belongs to none."""
    text = f'# about\n[server]\n{FILLER}\n[[peers]]  # two\n{FILLER}\n[a."b c"]\nx = 1\n'
    extraction = taken(tmp_path, "a.toml", text)

    assert extraction.text == text
    assert sections(extraction) == [(1, "server"), (1, "peers"), (1, 'a."b c')]
    assert extraction.mime == "application/toml"
    assert sections(taken(tmp_path, "backup.service", f"[Unit]\n{FILLER}[Service]\nx=1\n")) == [
        (1, "Unit"),
        (1, "Service"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("short.ini", "[a]\nx = 1\n\n[b]\ny = 2\n"),
        ("a.toml", f'text = """\n[no]\n[section]\n"""\n{FILLER}'),
        ("a.conf", "[no]\n" * 300),
        ("a.conf", "server { listen 80; }\n" * 100),
        ("scalars.yaml", f"a:\n{NESTED}b: 1\nc:\n{NESTED}"),
        ("one.yaml", f"a:\n{NESTED}"),
        ("ragged.yaml", f"   a:\n{NESTED} b:\n{NESTED}"),
        ("list.yaml", "- a: 1\n" * 200),
        ("comments.yaml", "# nothing\n" * 300),
        ("list.json", json.dumps(list(range(900)), indent=1)),
    ],
)
def test_where_there_is_doubt_nothing_is_a_heading(tmp_path: Path, name: str, text: str) -> None:
    """A short file, a string over lines, a setting that would be filed under the section before it."""
    extraction = taken(tmp_path, name, text)

    assert sections(extraction) == []
    assert extraction.text == text


def test_keys_that_hold_something_are_headings_two_levels_deep(tmp_path: Path) -> None:
    """Only long sections are parted again; lists at the margin of their key belong to it."""
    services = "".join(f"  app{n}:\n{NESTED}" for n in range(3))
    text = f'version: "3"\nservices:\n{services}"vol umes": # named\n- a\n- b\n'

    assert sections(taken(tmp_path, "compose.yaml", text)) == [
        (1, "services"), (2, "app0"), (2, "app1"), (2, "app2"), (1, "vol umes"),
    ]  # fmt: skip
    data = {"name": "x", "first": {"one": dict.fromkeys(map(str, range(99)), 1), "two": [1, 2]}, "second": [FILLER]}
    assert sections(taken(tmp_path, "a.json", json.dumps(data, indent=2))) == [
        (1, "first"), (2, "one"), (2, "two"), (1, "second"),
    ]  # fmt: skip


def test_json_of_one_line_is_given_lines(tmp_path: Path) -> None:
    """Numbers and strings stay as they were; too deep or broken it stays one line, or nearly so."""
    text = '{"a":1.50,"b":[],"c":{"d":"x, {y}","e":[1,[2]]},"f":{}}'

    tidied = taken(tmp_path, "a.json", text).text

    assert json.loads(tidied) == json.loads(text)
    assert tidied.startswith('{\n  "a": 1.50,\n  "b": [],\n  "c": {\n    "d": "x, {y}",')
    assert taken(tmp_path, "a.json", "[" * 100).text == "[" * 100
    assert taken(tmp_path, "a.json", '{"a":"open').text == '{\n  "a": "open'
