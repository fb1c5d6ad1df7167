"""What a turn searches for: its question, or what the question means after the talk before it (QUERY_REWRITE).

Owns the choice between the rules, the model and neither. The rules are `app.rag.follow_ups`', the request to the model
`app.rag.rewriting`'s. Used by `app.api.turn_searched`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.api.turn_start import TurnRequest, TurnStart
from app.edge.deps import Services
from app.rag.follow_ups import leans
from app.rag.gate import Gate, retrieve
from app.rag.prompts import PastTurn
from app.rag.rewriting import REWRITE_TOKENS, rewritten


@dataclass(frozen=True, slots=True)
class Found:
    """What the search gave, and how the query came to be (`rewrite`: `model`, or `rules` where the model's words could
    not be used; `rewrite_ms`); no facts where the model was not asked."""

    gate: Gate
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def found(services: Services, request: TurnRequest, start: TurnStart) -> Found:
    """Searches for the question. Words of the model's come first; where they find nothing close enough the rules are
    tried, too, and the better of both counts.

    Raises:
        RetrievalError: when the search fails.
    """
    asked, settings = start.asked, start.settings
    past = () if settings.query_rewrite == "off" else asked.past
    if settings.query_rewrite != "model" or not settings.llm_base_url or not past or not leans(asked.query):
        return Found(await _search(services, request, start, asked.query, past))
    began = services.clock.monotonic()
    brief = {"llm_max_tokens": REWRITE_TOKENS, "llm_retry_max": 0}
    words = await rewritten(asked.query, past, services.chat_for(settings.model_copy(update=brief)))
    ms = round((services.clock.monotonic() - began) * 1000)
    by_model = await _search(services, request, start, words, ()) if words else None
    if by_model is not None and by_model.mode == "grounded":
        return Found(by_model, {"rewrite": "model", "rewrite_ms": ms})
    by_rules = await _search(services, request, start, asked.query, past)
    if by_model is not None and by_rules.mode != "grounded" and by_model.top_score > by_rules.top_score:
        return Found(by_model, {"rewrite": "model", "rewrite_ms": ms})
    return Found(by_rules, {"rewrite": "rules", "rewrite_ms": ms})


async def _search(
    services: Services, request: TurnRequest, start: TurnStart, query: str, past: Sequence[PastTurn]
) -> Gate:
    return await retrieve(
        query,
        searcher=services.searcher,
        user_id=request.user_id,
        settings=start.settings,
        filters=start.asked.filters,
        history=past,
    )
