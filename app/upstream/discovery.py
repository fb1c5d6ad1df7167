"""Finding model servers on this machine.

Owns the usual ports and who is passed over: Docent itself. Looks only when asked, only at loopback, and for a second or
two. Called by the settings.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
import httpx2

from app.upstream.client import Endpoint, make_http
from app.upstream.failures import UpstreamError
from app.upstream.identify import identify
from app.upstream.models import fetch_models

USUAL_PORTS = (11434, 8080, 1234, 8000, 8643)
"""Ollama, llama.cpp, LM Studio, vLLM, and last scripts/demo-model: whoever has another model wants that one first."""

CONNECT_S = 0.5
ANSWER_S = 1.5
TOTAL_S = 4.0


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A model server: the address to enter, its kind ("" for unknown) and how many models it lists."""

    base_url: str
    kind: str
    version: str
    models: int


async def find_servers(ports: Sequence[int] = USUAL_PORTS, *, own_port: int) -> list[FoundServer]:
    """Servers that list models at `localhost:<port>/v1`, in the order of `ports`; Docent's own port is not asked."""
    found = await asyncio.gather(*[_look(port) for port in dict.fromkeys(ports) if port != own_port])
    return [server for server in found if server is not None]


async def _look(port: int) -> FoundServer | None:
    endpoint = Endpoint(f"http://localhost:{port}/v1", connect_s=CONNECT_S)
    http = await anyio.to_thread.run_sync(make_http, endpoint, httpx2.Timeout(ANSWER_S, connect=CONNECT_S))
    try:
        async with asyncio.timeout(TOTAL_S), http:
            models = await fetch_models(http, endpoint)
            identity = await identify(http, endpoint, models, None)
    except (UpstreamError, TimeoutError):
        return None
    return FoundServer(endpoint.base_url, identity.kind, identity.version, len(models))
