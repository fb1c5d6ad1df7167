"""What can go wrong in search.

EmbedError (AppError)        embed_unavailable: no answer · embed_rejected: the endpoint refuses or answers nonsense
├── DamagedModelError        embed_damaged: the built-in model's files are not the ones Docent was written for
└── UnknownEmbedderError     embed_unknown: no built-in one has that name · embed_not_installed: its extra is missing
"""

from collections.abc import Mapping

from app.errors import AppError


class EmbedError(AppError):
    """Vectors cannot be had now. Search goes on with full text alone; ingest tries again later.

    `retryable` says whether trying again may help without a change of settings.
    """

    status = 502
    default_code = "embed_unavailable"

    def __init__(
        self,
        code: str | None = None,
        *,
        retryable: bool = True,
        setting: str = "EMBED_BASE_URL",
        params: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code, setting=setting, params=params)
        self.retryable = retryable


class DamagedModelError(EmbedError):
    """The installation is broken; nothing the user did, and trying again does not help."""

    default_code = "embed_damaged"

    def __init__(self) -> None:
        super().__init__(retryable=False)


class UnknownEmbedderError(EmbedError):
    """EMBED_MODEL, without an address, names what is not there."""

    status = 422
    default_code = "embed_unknown"

    def __init__(self, code: str | None = None, *, params: Mapping[str, object] | None = None) -> None:
        super().__init__(code, retryable=False, setting="EMBED_MODEL", params=params)
