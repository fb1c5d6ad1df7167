"""The built-in embedder, with its real model."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from app.search import builtin
from app.search.builtin import MAX_CHARS, BuiltinEmbedder
from app.search.errors import DamagedModelError
from app.search.floor import measure


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


def test_likeness_of_meaning_is_likeness_of_vectors(embedder: BuiltinEmbedder) -> None:
    """A paraphrase without a shared word lies nearer than another subject."""
    query = embedder.embed_query("How do I get my files back after a crash?")
    near, far = embedder.embed_passages(["Restoring data from a backup snapshot.", "Grilled fish with lemon."])

    assert query @ near > 0.4 > 0.2 > query @ far


def test_the_floor_it_names_is_what_the_rule_finds_for_it(embedder: BuiltinEmbedder) -> None:
    """The rule's point of reference: what is ranked and scored with it is not moved by the rule."""
    measured = measure(embedder, lambda: True)
    assert measured is not None
    assert measured.floor == embedder.floor == 0.0


def test_vectors_have_unit_length_and_the_promised_shape(embedder: BuiltinEmbedder) -> None:
    """Whatever the text: empty, long, or no text at all."""
    matrix = embedder.embed_passages(["", "word " * 5000, "\ud800\0", "备份"])

    assert (matrix.shape, matrix.dtype) == ((4, embedder.dim), np.float32)
    assert np.linalg.norm(matrix, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert embedder.embed_passages([]).shape == (0, embedder.dim)


def test_a_text_gives_the_same_vector_each_time(embedder: BuiltinEmbedder) -> None:
    """As a question and as a passage, alone and among others."""
    alone = embedder.embed_query("pack size")

    assert np.array_equal(alone, embedder.embed_passages(["other", "pack size"])[1])


def test_what_lies_behind_the_limit_is_not_read(embedder: BuiltinEmbedder) -> None:
    """A question of a hundred thousand characters costs what a page costs."""
    text = "alpha beta " * MAX_CHARS

    assert np.array_equal(embedder.embed_query(text), embedder.embed_query(text + "gamma"))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Vectors of another model under this name would poison the index."""
    file = tmp_path / "tokenizer.json"
    file.write_bytes(b"{}")

    with pytest.raises(DamagedModelError) as caught:
        builtin.check_file(file, builtin.TOKENIZER_SHA256)
    assert (caught.value.code, caught.value.retryable) == ("embed_damaged", False)
    builtin.check_file(file, hashlib.sha256(b"{}").hexdigest())
