"""`docent eval`: the scores of a small library, asked as a turn asks."""

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


@pytest.fixture
def questions(database: Database, tmp_path: Path) -> Path:
    """Three questions on two documents: one answered, one about something else, one that follows another."""
    database.write(lambda s: add_document(s, "borg/prune.md", "Borg prunes weekly snapshots.", "Borg mounts archives."))
    database.write(lambda s: add_document(s, "restic.md", "Restic forgets snapshots."))
    database.write(lambda s: add_document(s, "broken.md", "Borg prunes.", status="failed"))
    lines = [
        {"question": "When does borg prune?", "kind": "lookup", "answer_docs": ["docs/borg/prune.md"],
         "answer_passage": "prunes weekly"},
        {"question": "What about kopia zebra?", "kind": "unanswerable", "answer_docs": []},
        {"question": "and how are they mounted?", "kind": "followup", "answer_docs": ["prune.md", "gone.md"],
         "answer_passage": "mounts archives",
         "history": [{"role": "user", "content": "Does borg have archives?"}]},
    ]  # fmt: skip
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return file


def test_it_scores_search_gate_and_citations(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents are known by the end of their paths; what the library lacks is said aside, and nothing is stored."""
    assert main(["eval", str(questions)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()

    assert lines[0] == "all (3)"
    assert "  document recall@5     1.000 (2/2)" in lines
    assert "  passage given         1.000 (2/2)" in lines
    assert "  deflection recall     1.000 (1/1)" in lines
    assert "  answerable deflected  0.000 (0/2)" in lines
    assert any(line.startswith("  valid citations       1.000 (") for line in lines)
    assert "kind followup (1)" in lines
    assert "gone.md" in said.err


def test_two_settings_stand_side_by_side(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one run, over the same questions."""
    assert main(["eval", str(questions), "--json", "--curve", "--against", "retrieval_min_score=1"]) == 0
    told = json.loads(capsys.readouterr().out)

    assert (told["questions"], told["unknown_documents"], told["budget_tokens"]) == (3, ["gone.md"], 3000)
    now, other = (told["runs"][name]["groups"]["all"] for name in ("now", "retrieval_min_score=1"))
    assert (now["answerable deflected"]["total"], other["deflection recall"]["total"]) == (0, 1)
    assert other["document recall@5"] == now["document recall@5"]
    assert len(told["runs"]["now"]["curve"]) == 21


def test_what_fits_no_budget_is_not_given(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All but the best passage."""
    assert main(["eval", str(questions), "--budget", "1", "-k", "1"]) == 0

    assert "  document recall@1     1.000 (2/2)" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--against", "PORT=1"], 1, "--against takes SETTING=VALUE"),
        (["--against", "RETRIEVAL_TOP_K"], 1, "--against takes SETTING=VALUE"),
        (["--against", "RETRIEVAL_TOP_K=many"], 2, "RETRIEVAL_TOP_K is 'many'"),
    ],
)
def test_a_setting_that_cannot_be_compared_is_refused(
    questions: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    """In one sentence, before anything is asked."""
    assert main(["eval", str(questions), *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [("{}\n", "line 1"), ("\n", "no questions"), (None, "No such file")])
def test_a_file_without_questions_is_refused(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    """With its name and the line."""
    file = tmp_path / "bad.jsonl"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    assert main(["eval", str(file)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "bad.jsonl" in err


def test_without_a_library_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And makes none."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "none"))

    assert main(["eval", "questions.jsonl"]) == 1
    assert "There is no library" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
