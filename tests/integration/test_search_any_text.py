"""Any text at all can be searched."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import add_document, embed_all


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def searcher(database: Database, embedder: WordEmbedder) -> Searcher:
    return Searcher(database, embedder, VectorIndex())


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.one_of(
        st.text(alphabet=st.characters(exclude_categories=()), max_size=80),
        st.lists(st.sampled_from(["NEAR(backup)", '"', "OR", "AND NOT", "text:x", "*", "\0", "\ud800", "备份"])).map(
            " ".join
        ),
    )
)
def test_no_query_raises(database: Database, searcher: Searcher, embedder: WordEmbedder, query: str) -> None:
    """Operators, quotes, NUL and lone surrogates are just text."""
    if not searcher.search("backup", user_id=1):
        database.write(lambda session: add_document(session, "a.md", 'backup NEAR text "quoted" 备份'))
        embed_all(database, embedder)

    for hit in searcher.search(query, user_id=1):
        assert 0 <= hit.score <= 1


def test_a_hundred_thousand_characters_can_be_searched(
    database: Database, searcher: Searcher, embedder: WordEmbedder
) -> None:
    """Pasted pages are cut to their rarest terms."""
    database.write(lambda session: add_document(session, "a.md", "needle in the hay"))
    embed_all(database, embedder)
    query = " ".join(f"straw{number}" for number in range(10_000)) + " needle"

    assert [hit.path for hit in searcher.search(query, user_id=1)] == ["a.md"]
