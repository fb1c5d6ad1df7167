"""What can go wrong with a model's reply. Pure.

    LLMError (AppError)        llm_unavailable, llm_timeout, llm_rejected, llm_incomplete, context_overflow
    └── MalformedReplyError    malformed_reply; raised by the recovery policy only, never inside a stream

Catch `MalformedReplyError` before `LLMError`. The provider's own text is never part of either.
"""

from collections.abc import Mapping

from app.errors import AppError


class LLMError(AppError):
    """The model's reply cannot be had, or broke off.

    Args:
        code: The error frame's code; the sentence is chosen by `reason`.
        reason: Narrows the sentence: catalog key `errors.<code>.<reason>` where it exists (`errors.llm_rejected.key`).
        provider_status: The HTTP status, when there was one.
        retryable: Whether asking again may help without a change of settings.
    """

    status = 502
    default_code = "llm_unavailable"

    def __init__(
        self,
        code: str | None = None,
        *,
        reason: str | None = None,
        provider_status: int | None = None,
        retryable: bool = True,
        setting: str | None = None,
        params: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code, setting=setting, params=params)
        self.reason = reason
        self.provider_status = provider_status
        self.retryable = retryable


class MalformedReplyError(LLMError):
    """The model was asked and sent no readable text."""

    default_code = "malformed_reply"
