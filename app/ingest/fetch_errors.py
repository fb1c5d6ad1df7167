"""Why a web page could not be fetched. Pure.

    FetchError (AppError)       code `ingest_<reason>`; the reason is what `documents.error` and `web_pages.error` store
    FetchStoppedError           Docent is stopping; nothing is known about the page

Raised by `app.ingest.egress` and what it is made of, caught by `app.ingest.fetch_work`. As the answer to a request only
for addresses that are none.
"""

from typing import Literal, get_args

from app.errors import AppError

FetchReason = Literal[
    "fetch_address",
    "fetch_scheme",
    "fetch_credentials",
    "fetch_private",
    "fetch_port",
    "fetch_no_host",
    "fetch_unreachable",
    "fetch_timeout",
    "fetch_tls",
    "fetch_redirects",
    "fetch_downgrade",
    "fetch_not_found",
    "fetch_denied",
    "fetch_busy",
    "fetch_server",
    "fetch_status",
    "fetch_too_large",
    "fetch_encoding",
    "fetch_broken",
    "fetch_disk",
    "fetch_internal",
]
"""address: no web address, or one that two programs could read differently. scheme: neither http nor https.
credentials: a user name or password in it. private: leads to an address that is not on the public internet. port:
another than 80 and 443. no_host: nobody has the name. unreachable: no connection, or it broke. redirects: more than
five, or in a circle. downgrade: from https to http. not_found: 404 or 410. denied: wants a login, or forbids. busy: 429
or 503. server: another 5xx. status: any other answer. too_large: over UPLOAD_MAX_MB, as it comes or unpacked. encoding:
compressed in a way that was not asked for. broken: no HTTP, or shorter than promised. disk: no room for it."""

REASONS: frozenset[str] = frozenset(get_args(FetchReason))

RETRIED: frozenset[str] = frozenset(
    {
        *("fetch_unreachable", "fetch_timeout", "fetch_busy", "fetch_server", "fetch_broken", "fetch_disk"),
        "fetch_internal",
    }
)
"""Reasons that may be gone in a minute; the others are facts about the address."""


class FetchError(AppError):
    """One page cannot be fetched.

    Args:
        wait_s: How long the server asked to be left alone, in seconds.
    """

    status = 422

    def __init__(self, reason: FetchReason, *, wait_s: float = 0.0) -> None:
        super().__init__(f"ingest_{reason}", setting="FETCH_ALLOW_CIDRS" if reason == "fetch_private" else None)
        self.reason: FetchReason = reason
        self.wait_s = wait_s

    @property
    def is_retryable(self) -> bool:
        """Whether trying again soon may help."""
        return self.reason in RETRIED


class FetchStoppedError(Exception):
    """The process wants to end."""
