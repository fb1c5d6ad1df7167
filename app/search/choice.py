"""Which embedders there are: the built-in ones by their names, and whatever an endpoint serves.

Owns the list of built-in embedders and what a setting means: without EMBED_BASE_URL, EMBED_MODEL names a built-in one;
without both, the first of the list. To add one, add its line to `BUILT_INS`, and the words `built_in_<words>` and
`built_in_<words>_limit` to the catalog's area `generations`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.search import multilingual
from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import Embedder
from app.search.endpoint import EndpointEmbedder
from app.search.errors import UnknownEmbedderError
from app.search.multilingual import MultilingualEmbedder
from app.settings import Settings
from app.upstream.client import Endpoint, embed_endpoint_from


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """An embedder that runs in this process, `dim` numbers a vector. `words` names its sentences in the catalog,
    `install` is the command that brings it, empty where it comes with Docent."""

    name: str
    dim: int
    words: str
    make: Callable[[], Embedder]
    is_installed: Callable[[], bool] = lambda: True
    install: str = ""


BUILT_INS = (
    BuiltIn(BuiltinEmbedder.model, BuiltinEmbedder.dim, "english", BuiltinEmbedder),
    BuiltIn(
        MultilingualEmbedder.model,
        MultilingualEmbedder.dim,
        "multilingual",
        MultilingualEmbedder,
        is_installed=multilingual.is_installed,
        install=multilingual.INSTALL,
    ),
)
DEFAULT = BUILT_INS[0].name


@dataclass(frozen=True, slots=True)
class Spec:
    """A choice: a model, and where it answers; `base_url` None: a built-in one."""

    model: str = DEFAULT
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


def spec_from(settings: Settings) -> Spec:
    """What `settings` choose."""
    endpoint = embed_endpoint_from(settings)
    if endpoint is None or endpoint.model is None:
        return Spec(settings.embed_model or DEFAULT)
    return Spec(endpoint.model, endpoint.base_url, endpoint.api_key)


def endpoint_of(spec: Spec, settings: Settings) -> Endpoint | None:
    """The server of a choice, with the clocks of `settings`; None for a built-in one."""
    if spec.base_url is None:
        return None
    named = settings.model_copy(update={"embed_base_url": spec.base_url, "embed_api_key": spec.api_key})
    endpoint = embed_endpoint_from(named)
    return replace(endpoint, model=spec.model) if endpoint is not None else None


def built_in(name: str, among: Sequence[BuiltIn] = BUILT_INS) -> BuiltIn:
    """The built-in embedder of that name, installed.

    Raises:
        UnknownEmbedderError: `embed_unknown` when there is none, `embed_not_installed` when its extra is missing.
    """
    for known in among:
        if known.name == name:
            if not known.is_installed():
                raise UnknownEmbedderError("embed_not_installed", params={"name": name, "install": known.install})
            return known
    names = ", ".join(known.name for known in among)
    raise UnknownEmbedderError("embed_unknown", params={"name": name, "names": names})


def make(spec: Spec, settings: Settings) -> Embedder:
    """The embedder of a choice. Loads and asks nothing yet.

    Raises:
        UnknownEmbedderError: as `built_in`.
    """
    endpoint = endpoint_of(spec, settings)
    return EndpointEmbedder(endpoint) if endpoint is not None else built_in(spec.model).make()


def embedder_from(settings: Settings) -> Embedder:
    """The embedder that `settings` choose.

    Raises:
        UnknownEmbedderError: as `built_in`.
    """
    return make(spec_from(settings), settings)
