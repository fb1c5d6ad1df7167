"""`docent search`: prints what the API would answer, while no server runs."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main
from app.settings import Settings
from app.store.engine import Database
from tests.integration.search_library import add_document


@pytest.fixture(autouse=True)
def _environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command reads its settings from the environment, and takes over the log."""
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_it_prints_title_place_score_and_a_snippet(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """Enough to open the file at the line."""
    database.write(lambda s: add_document(s, "dir/a.md", "First.", "Borg prunes\tweekly.", title="The \x1b[31mguide"))

    assert main(["search", "borg", "weekly"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1. The [31mguide",
        "   dir/a.md:3-3  1.00",
        "   Borg prunes weekly.",
    ]


def test_a_long_passage_is_cut_at_a_word(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a passage."""
    database.write(lambda s: add_document(s, "a.md", "borg " * 100))

    main(["search", "borg"])
    snippet = capsys.readouterr().out.splitlines()[-1]
    assert snippet.endswith("borg …")
    assert len(snippet) < 210


def test_json_is_what_the_api_answers(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts; -k says how many."""
    database.write(lambda s: [add_document(s, f"{n}.md", f"borg {n}") for n in range(4)])

    assert main(["search", "--json", "-k", "2", "borg"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert [hit["text"] for hit in hits] == ["borg 0", "borg 1"]


def test_nothing_found_is_said_plainly(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, exit code 1, and valid JSON where that is asked."""
    database.write(lambda s: add_document(s, "a.md", "borg"))

    assert main(["search", "--json", "zebra"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out) == {"hits": []}
    assert "Nothing was found" in output.err


def test_an_empty_library_says_what_to_do(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """Also when documents are there but not read yet."""
    assert main(["search", "borg"]) == 1
    assert "docent ingest" in capsys.readouterr().err
    database.write(lambda s: [add_document(s, f"{n}.md", status="queued") for n in range(2)])

    assert main(["search", "borg"]) == 1
    assert "2 are still to be read" in capsys.readouterr().err


def test_without_a_database_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking must not leave a data folder behind."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "none"))
    assert main(["search", "borg"]) == 1
    assert "There is no library" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("query", ["", "  "])
def test_a_blank_question_is_refused(database: Database, capsys: pytest.CaptureFixture[str], query: str) -> None:
    """With the sentence the page shows."""
    assert main(["search", query]) == 1
    assert "Write a question first." in capsys.readouterr().err
