"""What several parts remember of a model server, forgotten together. Called by `app.api` and the settings."""

from app.edge.deps import Services
from app.upstream.client import Endpoint


def forget_server(services: Services, endpoint: Endpoint) -> None:
    """The connection was lost, or somebody looked after the server: what answers from now on may be another, so its
    window and its build are asked for again. Event loop only, never waits."""
    services.windows.forget(endpoint)
    services.guard_backends.forget(endpoint)
