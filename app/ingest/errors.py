"""Why a document could not be taken in. Pure.

    IngestError (AppError)      code `ingest_<reason>`; the reason is what `documents.error` stores
    └── ExtractorClosedError    internal; Docent is stopping, the document itself is fine

Raised by `app.ingest.extract` and the pipeline, caught by the worker, which marks that one document failed. It is never
an HTTP response.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from app.errors import AppError

IngestReason = Literal[
    "empty",
    "no_text",
    "encrypted",
    "corrupt",
    "unsupported",
    "too_large",
    "too_long",
    "timeout",
    "vanished",
    "unreadable",
    "internal",
]
"""empty: no bytes, or white space only. no_text: pages but no text in them. encrypted: needs a password. corrupt: not
what its type promises, or broken off. unsupported: a type nobody here reads. too_large: over UPLOAD_MAX_MB. too_long:
more text, pages or memory than one document may take, as it lies or unpacked. timeout: over the time limit. vanished:
the file is gone. unreadable: no permission. internal: the parser crashed in a way that is Docent's fault."""

REASONS: frozenset[str] = frozenset(get_args(IngestReason))

RETRYABLE: frozenset[str] = frozenset({"timeout", "unreadable", "internal"})
"""Reasons that may go away when the same bytes are read again; the others are facts about the file."""


class IngestError(AppError):
    """One document cannot be taken in.

    Args:
        reason: One of `IngestReason`.
        params: Values for the sentence's placeholders.
    """

    status = 422

    def __init__(self, reason: IngestReason, *, params: Mapping[str, object] | None = None) -> None:
        super().__init__(f"ingest_{reason}", params=params)
        self.reason: IngestReason = reason

    @property
    def retryable(self) -> bool:
        """Whether reading the same file again may help."""
        return self.reason in RETRYABLE


class ExtractorClosedError(IngestError):
    """The extractor was closed before or while it read this document; nothing is known about the document."""

    def __init__(self) -> None:
        super().__init__("internal")
