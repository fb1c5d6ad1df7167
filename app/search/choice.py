"""Which embedder is at work: the built-in one, or the endpoint that the settings name."""

from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import Embedder
from app.search.endpoint import EndpointEmbedder
from app.settings import Settings
from app.upstream.client import embed_endpoint_from


def embedder_from(settings: Settings) -> Embedder:
    """The embedder of `settings`. Loads and asks nothing yet."""
    endpoint = embed_endpoint_from(settings)
    if endpoint is None or endpoint.model is None:
        return BuiltinEmbedder()
    return EndpointEmbedder(endpoint)
