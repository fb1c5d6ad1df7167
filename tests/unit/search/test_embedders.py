"""Which embedder made a generation's vectors, and which one the settings choose."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.search import choice
from app.search.choice import DEFAULT, BuiltIn, Spec
from app.search.embeddings import Embedder
from app.search.endpoint import EndpointEmbedder
from app.search.errors import UnknownEmbedderError
from app.search.generations import Embedders, embedders_of
from app.settings import Settings
from app.store.vectors import ActiveGeneration
from tests.fake_embedder import WordEmbedder

A = "http://a.lan:1/v1"


@pytest.fixture
def bare(tmp_path: Path) -> Callable[..., Settings]:
    return lambda **values: Settings(_env_file=None, data_dir=tmp_path, **values)


def test_a_name_without_an_address_is_a_built_in_one(bare: Callable[..., Settings]) -> None:
    """None at all is the first; an unknown one says which there are."""
    assert choice.spec_from(bare()) == Spec(DEFAULT)
    assert choice.spec_from(bare(embed_base_url=A, embed_model="m", embed_api_key="k")) == Spec("m", A, "k")
    assert choice.embedder_from(bare(embed_model=DEFAULT)).model == DEFAULT
    with pytest.raises(UnknownEmbedderError) as caught:
        choice.embedder_from(bare(embed_model="nothing"))
    assert (caught.value.code, caught.value.params["names"]) == (
        "embed_unknown",
        ", ".join(b.name for b in choice.BUILT_INS),
    )


def test_one_that_is_not_installed_says_what_brings_it() -> None:
    """Its name is known."""
    extra = BuiltIn("later", 8, "english", WordEmbedder, lambda: False, "scripts/setup --later")
    with pytest.raises(UnknownEmbedderError) as caught:
        choice.built_in("later", (*choice.BUILT_INS, extra))
    assert (caught.value.code, caught.value.params["install"]) == ("embed_not_installed", "scripts/setup --later")


def test_a_generation_gets_its_own_embedder(bare: Callable[..., Settings]) -> None:
    """By its address and name; the built-in one by its name; a model without an address is out of reach."""
    embedders = Embedders(bare())
    one = embedders.of(ActiveGeneration(1, "m", 8, A))
    assert isinstance(one, EndpointEmbedder)
    assert one is embedders.of(ActiveGeneration(2, "m", 16, A))
    built_in = embedders.of(ActiveGeneration(3, DEFAULT, 384))
    assert built_in is not None
    assert built_in.model == DEFAULT
    assert embedders.of(ActiveGeneration(4, DEFAULT, 8)) is None
    assert embedders.of(ActiveGeneration(5, "m", 8)) is None
    embedders.close()


def test_the_environments_key_goes_to_its_own_host(bare: Callable[..., Settings]) -> None:
    """Whether a generation's address is the environment's or only on the same host; not to another one."""
    asked: list[Spec] = []

    def make(spec: Spec, _settings: Settings) -> Embedder:
        asked.append(spec)
        return WordEmbedder(spec.model)

    embedders = Embedders(bare(embed_base_url=A, embed_model="m", embed_api_key="env"), make=make)
    for base_url, stored in ((A, None), ("http://a.lan:2/v1", None), ("http://b.lan/v1", None), (A, "own")):
        embedders.of(ActiveGeneration(1, "m", 64, base_url, stored))
    assert [spec.api_key for spec in asked] == ["env", "env", None, "own"]


def test_what_nobody_needs_is_closed_after_a_while(bare: Callable[..., Settings]) -> None:
    """Not what a question may just be using."""
    made: dict[str, WordEmbedder] = {}

    def make(spec: Spec, _settings: Settings) -> Embedder:
        return made.setdefault(spec.model, WordEmbedder(spec.model))

    embedders = Embedders(bare(), make=make)
    old, new = ActiveGeneration(1, "old", 64, A), ActiveGeneration(2, "new", 64, A)
    assert embedders.of(old)
    assert embedders.of(new)
    embedders.tidy([new])
    assert not made["old"].is_closed
    embedders.tidy([new], idle_s=-1)
    assert (made["old"].is_closed, made["new"].is_closed) == (True, False)


def test_a_single_embedder_serves_only_what_it_made() -> None:
    """Nothing else is loaded for it."""
    single = embedders_of(WordEmbedder("one", 64))
    assert single.of(ActiveGeneration(1, "one", 64)) is not None
    assert single.of(ActiveGeneration(1, "one", 32)) is None
    assert single.of(ActiveGeneration(1, DEFAULT, 384)) is None
    assert embedders_of(single) is single
