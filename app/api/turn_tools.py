"""Whether a turn is offered tools, and the toolbox it gets. Running them is `app.rag`'s. Used by `app.api.run_turn`."""

from app.api.turn_start import TurnRequest, TurnStart
from app.edge.deps import Services
from app.rag.context import Prompt
from app.rag.gate import Gate
from app.rag.tool_calls import Toolbox, Tools
from app.rag.toolbox import DEFINITIONS, LibraryToolbox, ToolLimits, ToolSources, tool_texts
from app.upstream.client import endpoint_from


def offered_tools(services: Services, start: TurnStart, gate: Gate) -> Tools:
    """The definitions a turn's prompt has to leave room for: none for a deflected turn, none where AGENT_ENABLED is
    off, and none for a server that refused tools lately."""
    endpoint = endpoint_from(start.settings)
    if gate.mode != "grounded" or not start.settings.agent_enabled or endpoint is None:
        return ()
    return () if services.clients.refuses_tools(endpoint) else DEFINITIONS


def make_toolbox(services: Services, request: TurnRequest, start: TurnStart, prompt: Prompt) -> Toolbox | None:
    """The toolbox of a turn whose prompt left room for one."""
    if not prompt.tool_room:
        return None
    limits = ToolLimits(prompt.tool_room, start.settings.agent_max_rounds, start.settings.retrieval_top_k)
    return LibraryToolbox(
        ToolSources(services.database, services.searcher, services.clock, tool_texts(services.catalog)),
        limits,
        user_id=request.user_id,
        filters=start.asked.filters,
        given=lambda: prompt.passages,
    )
