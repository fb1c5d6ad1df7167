"""The reader over every format: each passage is set off exactly, and a supporting sentence in it is marked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser

from app.render.highlight import reader_html
from app.render.sentences import sentences
from app.settings import Settings
from app.store.engine import Database
from tests.integration import library_rows as rows
from tests.library_api import documents, serving, settle, upload

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "formats"
OWN = {
    "pump.md": "# Pump\n\nIt starts at *noon*, **always**.\n\n1. Open `valve 3`.\n2. Wait.\n\n> Said so.\n\n"
    "| Code | Means |\n| --- | --- |\n| E04 | too hot |\n\n```sh\npump --start  # now\n```\n\n"
    "See [the plan](plan.md).\n",
    "pump.rst": "Pump\n====\n\nIt starts at noon::\n\n    pump --start\n\n* One thing.\n* Another thing.\n",
    "pump.txt": "Notes on the pump\n\nIt starts at noon.\n    Indented, and still prose of the notes.\n",
    "pump.py": 'def start(pump):\n    """Starts it."""\n    if pump.cold:\n        return pump.wait(5)\n',
    "pump.html": "<title>Pump</title><nav>Menu</nav><main><h1>Pump</h1><p>It starts at <b>noon</b>.</p>"
    "<table><tr><th>Code</th></tr><tr><td>E04</td></tr></table><pre>pump --start</pre></main>",
    "pump.json": '{"pump": {"start": "12:00", "codes": ["E04", "E05"]}, "lamp": "green"}',
    "pump.yaml": "pump:\n  start: '12:00'  # noon\n  codes: [E04, E05]\nlamp: green\n",
    "pump.toml": "[pump]\nstart = 12\n\n[lamp]\ncolour = 'green'\n",
    "pump.ini": "[pump]\nstart=12\n; a comment\n[lamp]\ncolour=green\n",
    "pump.csv": "code,means\nE04,too hot\nE05,too cold\n",
    "pump.eml": "From: a@example.org\nTo: b@example.org\nSubject: The pump\nDate: Mon, 3 Nov 2025 10:00:00 +0000\n"
    "MIME-Version: 1.0\nContent-Type: text/plain\n\nIt starts at noon.\nGreetings, A.\n",
}
MARKUP = re.compile(
    r"!?\[(?P<words>[^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\))?[^()\n]{0,200}\)|^[ \t>]*(?:`{3,}|~{3,}).*$"
    r"|^[ \t]*\|(?:\s*:?-+:?\s*\|)+[ \t]*$|[ \t]*\{#[\w-]+\}[ \t]*$",
    re.MULTILINE,
)


def letters(text: str) -> str:
    """Letters and digits only: marks of structure may be shown another way or not at all."""
    return "".join(character for character in text if character.isalnum())


def shown(text: str) -> str:
    """What of a text a reader is shown: the words of links, and no fences' languages."""
    while (less := MARKUP.sub(lambda found: found.group("words") or "", text)) != text:
        text = less
    return letters(text)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A library with a file of every format that is there."""
    settings = Settings(_env_file=None, data_dir=tmp_path_factory.mktemp("formats") / "data")
    with serving(settings) as client:
        upload(client, *OWN.items())
        if CORPUS.is_dir():
            found = sorted(path for path in CORPUS.iterdir() if path.suffix != ".json")
            upload(client, *((path.name, path.read_bytes()) for path in found))
        settle(client)
        yield client


@pytest.fixture(scope="module")
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


def ready(client: TestClient) -> dict[str, int]:
    return {row["path"]: row["id"] for row in documents(client, limit=200) if row["status"] == "ready"}


def test_every_format_is_there(client: TestClient) -> None:
    """Own files of eleven kinds; with the shared set office files, books and PDF too."""
    found = ready(client)
    assert OWN.keys() <= found.keys()
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus does not lie beside this project")
    suffixes = {path.rpartition(".")[2] for path in found}
    assert {"pdf", "docx", "xlsx", "pptx", "epub", "eml", "csv", "html"} <= suffixes


def test_the_reader_sets_off_exactly_the_passage(client: TestClient, database: Database) -> None:
    """For each passage of each document: its words stand in the section, no others, and the page holds all the text."""
    for path, document in ready(client).items():
        text = client.get(f"/api/documents/{document}").json()["text"]
        for passage in rows.passages_of(database, document):
            tree = LexborHTMLParser(client.get(f"/documents/{document}?chunk={passage.id}").text)
            (section,) = tree.css("#passage")
            assert letters(section.text()) == shown(passage.text), (path, passage.ordinal)
            (body,) = tree.css(".reader-text")
            assert letters(body.text()) == shown(text), (path, passage.ordinal)
            assert not body.css("mark")


def test_a_supporting_sentence_is_marked_in_every_format(client: TestClient, database: Database) -> None:
    """Each sentence, row and heading of each passage could be what backs a claim: marked whole, within the passage, and
    the text stays the same."""
    for path, document in ready(client).items():
        detail = client.get(f"/api/documents/{document}").json()
        plain = str(reader_html(detail["text"], detail["mime"], path=path))
        for passage in rows.passages_of(database, document):
            span = (passage.char_start, passage.char_end)
            for unit in sentences(passage.text):
                if unit.kind == "code" or not shown(passage.text[unit.start : unit.end]):
                    continue
                support = (span[0] + unit.start, span[0] + unit.end)
                html = str(reader_html(detail["text"], detail["mime"], path=path, passage=span, support=[support]))
                tree = LexborHTMLParser(html)
                marked = letters("".join(mark.text() for mark in tree.css("mark")))
                wanted = passage.text[unit.start : unit.end]
                assert marked == shown(wanted), (path, wanted)
                assert len(tree.css("#passage mark")) == len(tree.css("mark"))
                assert letters(tree.text()) == letters(LexborHTMLParser(plain).text())
