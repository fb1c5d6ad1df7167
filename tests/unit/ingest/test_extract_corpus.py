"""Real documents: the shared reference files and the homelab corpus, where they lie beside this project."""

import json
import unicodedata
from pathlib import Path

import pytest

from app.ingest.chunking import chunk
from tests.unit.ingest.files import read, reason_of

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"


def collapsed(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def test_the_reference_files_are_read_as_expected() -> None:
    """Every format of the shared set: its strings are there, its noise is not, its errors are the named ones."""
    if not (CORPUS / "formats" / "expected.json").exists():
        pytest.skip("the shared corpus does not lie beside this project")
    expected = json.loads((CORPUS / "formats" / "expected.json").read_text("utf-8"))["files"]
    for name, wanted in expected.items():
        path = CORPUS / "formats" / name
        if "error" in wanted:
            assert reason_of(path) in [wanted["error"], *wanted.get("error_any", [])], name
            continue
        extraction = read(path)
        text = collapsed(extraction.text)
        strings = [*wanted["must_contain"], *wanted.get("attachment_contains", []), *wanted.get("attachments", [])]
        assert [part for part in strings if collapsed(part) not in text] == [], name
        assert [part for part in (*wanted.get("must_not_contain", []), *wanted.get("noise", [])) if part in text] == []
        assert extraction.pages == (wanted.get("pages") or wanted.get("slides")), name
        headings = [block.label for block in extraction.blocks if block.kind == "heading"]
        assert [sheet for sheet in wanted.get("sheets", []) if sheet not in headings] == [], name
        for page in wanted.get("textless_pages", []):
            assert extraction.text_yield is not None
            assert extraction.text_yield[page - 1] == 0


def test_every_document_of_the_homelab_corpus_is_read() -> None:
    """413 real documents and their licences, none lost; answers to its questions stand whole in one passage."""
    if not (CORPUS / "homelab").is_dir():
        pytest.skip("the shared corpus does not lie beside this project")
    paths = sorted(path for path in (CORPUS / "homelab").rglob("*") if path.is_file())
    passages: dict[str, list[str]] = {}
    for path in paths:
        chunks = chunk(read(path))
        assert chunks, path
        passages[str(path.relative_to(CORPUS / "homelab"))] = [plain(draft.text) for draft in chunks]

    assert len(paths) >= 413
    assert 4_000 < sum(map(len, passages.values())) < 9_000
    for line_ in (CORPUS / "questions.jsonl").read_text("utf-8").splitlines():
        question = json.loads(line_)
        answers = question.get("answer_passages") or [question.get("answer_passage")]
        for document, answer in zip(question["answer_docs"], answers, strict=False):
            where = passages[document.removeprefix("homelab/")]
            assert any(plain(answer) in passage for passage in where), question["id"]


def plain(text: str) -> str:
    return " ".join(text.translate(str.maketrans("", "", "*_`")).split())
