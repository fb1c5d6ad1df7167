"""The root of Docent's error tree.

Owns the base classes that carry a machine code, an HTTP status and the facts for the user's sentence. The sentence
itself lives in the message catalog under `errors.<code>`, so that it can be translated. It does not turn errors into
responses (`app.edge.errors` does) or into frames (`app.api.chat` does).

    AppError
    ├── NotFoundError        404  not_found: the row does not exist or is not the user's
    ├── ConflictError        409  e.g. chat_busy
    ├── InvalidInputError    422  e.g. question_empty, question_too_long
    ├── TooLargeError        413  e.g. upload_too_large
    ├── app.rag.errors.LLMError          502/504, and its subclass MalformedReplyError
    └── app.ingest.errors.IngestError    per-document reasons, never an HTTP response
"""

from collections.abc import Mapping


class AppError(Exception):
    """Something went wrong in a way that has a sentence for the user.

    Args:
        code: Names the sentence: catalog key `errors.<code>`. Stable; also what an API client switches on.
        setting: The setting to change (`UPLOAD_MAX_MB`), or None.
        params: Values for the sentence's `{placeholders}`.
    """

    status: int = 500
    default_code: str = "internal"

    def __init__(
        self,
        code: str | None = None,
        *,
        setting: str | None = None,
        params: Mapping[str, object] | None = None,
    ) -> None:
        self.code = code or self.default_code
        self.setting = setting
        self.params: dict[str, object] = dict(params or {})
        super().__init__(self.code)


class NotFoundError(AppError):
    """A row that does not exist, or is not the user's: the two look the same from outside."""

    status = 404
    default_code = "not_found"


class ConflictError(AppError):
    """The request is fine but clashes with what is going on."""

    status = 409
    default_code = "conflict"


class InvalidInputError(AppError):
    """The request itself cannot be taken; nothing was stored."""

    status = 422
    default_code = "invalid_input"


class TooLargeError(AppError):
    """A body or file over its limit."""

    status = 413
    default_code = "too_large"
