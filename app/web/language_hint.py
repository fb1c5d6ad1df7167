"""The hint that documents are in languages which the embedder at work does not know.

Used by the library's page. Counting is `app.store.readings`', telling languages `app.ingest`'s.
"""

from collections.abc import Sequence

from app.catalog import Catalog
from app.edge.deps import Services
from app.ingest.extract.language import UNKNOWN
from app.search.builtin import BuiltinEmbedder
from app.store import readings
from app.store.engine import Session
from app.store.vectors import active_generation

LEAST_DOCUMENTS = 3
LEAST_SHARE = 0.1
"""Of the documents whose language is known; a stray file is no reason to change anything."""
MOST_NAMED = 3


def language_hint(services: Services, user_id: int) -> str:
    """The sentence, empty where there is nothing to say or another embedder than the English one is at work."""

    def read(session: Session) -> list[tuple[str, int]]:
        active = active_generation(session)
        is_english = active is not None and active.base_url is None and active.model == BuiltinEmbedder.model
        return readings.languages(session, user_id) if is_english else []

    return hint_words(services.database.read(read), services.catalog)


def hint_words(counts: Sequence[tuple[str, int]], catalog: Catalog) -> str:
    """The sentence for documents by language."""
    known = [(code, count) for code, count in counts if code != UNKNOWN]
    others = [(code, count) for code, count in known if code != "en"]
    of, n = sum(count for _, count in known), sum(count for _, count in others)
    if n < LEAST_DOCUMENTS or n < of * LEAST_SHARE:
        return ""
    which = ", ".join(
        catalog.t("languages.count", name=_name(code, catalog), n=count) for code, count in others[:MOST_NAMED]
    )
    return catalog.t("languages.hint", n=n, of=of, which=which)


def _name(code: str, catalog: Catalog) -> str:
    key = f"languages.name_{code}"
    return catalog.t(key) if catalog.has(key) else code
