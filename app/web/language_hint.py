"""The hint that documents are in languages which the embedder at work does not know.

Stands in the settings, and in the library until it is put away; owns the route that does. Counting is
`app.store.readings`', telling languages `app.ingest`'s.
"""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.catalog import Catalog
from app.edge.deps import Services, ServicesDep, UserDep
from app.ingest.extract.language import NO_LANGUAGE, UNKNOWN
from app.search.builtin import BuiltinEmbedder
from app.store import put_away, readings
from app.store.engine import Session
from app.store.vectors import active_generation
from app.web.templating import is_htmx

router = APIRouter()

LEAST_DOCUMENTS = 3
LEAST_SHARE = 0.1
"""Of the documents whose language is known; a stray file is no reason to change anything."""
MOST_NAMED = 3
HINT = "languages"


@router.post("/ui/library/languages/hide")
def hide_hint(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Puts the hint away in the library, until documents in yet another language come."""

    def work(session: Session) -> None:
        others = sorted(code for code, _ in _counts(session, user_id) if code not in ("en", UNKNOWN))
        put_away.put_away(session, user_id, HINT, others, services.clock.now())

    services.database.write(work)
    return Response() if is_htmx(request) else RedirectResponse("/library", 303)


def language_hint(services: Services, user_id: int) -> str:
    """The sentence, empty where there is nothing to say or another embedder than the English one is at work."""
    return hint_words(services.database.read(lambda session: _counts(session, user_id)), services.catalog)


def library_hint(services: Services, user_id: int) -> str:
    """The sentence where it says something that was not put away."""

    def read(session: Session) -> list[tuple[str, int]]:
        counts, known = _counts(session, user_id), put_away.was_about(session, user_id, HINT)
        return counts if {code for code, _ in counts} - known - {"en", UNKNOWN} else []

    return hint_words(services.database.read(read), services.catalog)


def _counts(session: Session, user_id: int) -> list[tuple[str, int]]:
    """Documents by language while the English embedder is at work."""
    active = active_generation(session)
    is_english = active is not None and active.base_url is None and active.model == BuiltinEmbedder.model
    told = readings.languages(session, user_id) if is_english else []
    return [(code, count) for code, count in told if code not in NO_LANGUAGE]


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
