"""The fault catalogue: what a model server does wrong, by name, and how a turn has to end for it.

The behaviours are `tests/faults.py`'s and `tests/fault_behaviours.py`'s; `tests/integration/test_fault_catalogue.py`
plays each in the first, a middle and the last round of a turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fault_behaviours import SHAPED, only_with_tools
from tests.fault_server import Fault
from tests.faults import FAULTS, OVERFLOWS, TOOLS_REFUSED

SHORT_S = 1.0
"""The clocks of the faults that wait for one."""


@dataclass(frozen=True)
class Case:
    """A fault and its documented end.

    `end` is `ok`, or `code.reason` of the failure; `said` is what stays visible of the round, white space apart.
    `requests` is how many requests the round may cost, retries and repeats included. `limit_s` is the limit that the
    end has to come within, one second apart. `endpoint` holds fields of the endpoint for the round alone.
    """

    serve: Fault
    end: str
    said: str = ""
    requests: int = 1
    limit_s: float = 5.0
    endpoint: Mapping[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {}
"""Each is played in all three rounds."""

FAMILIES: dict[str, Case] = {}
"""Many alike: each is played in one round, in turn; in all three in the long mode."""


def ends(end: str, said: str, *names: str, requests: int = 1, limit_s: float = 5.0, **endpoint: Any) -> None:
    """Faults that end alike."""
    for name in names:
        CASES[name] = Case(FAULTS[name], end, said, requests, limit_s, endpoint)


# Odd, but whole.
ends("ok", "Hello", "ok", "late", "slow-bytes", "null-shapes", "three-bad-frames", "no-type", "crlf", "bom")
ends("ok", "Hello", "503-once", "429-soon", "reset-once", "no-stream-options", requests=2)
ends("ok", "a", "usage", "reset-after-finish", "done-without-reason", "reason-without-done", "parts")
ends("ok", "a", "open-after-finish", limit_s=SHORT_S, idle_s=SHORT_S)
ends("ok", "x", "pings-then-ok")
ends("ok", "whole", "json", "json-as-text")
ends("ok", "Yes.", "reasoning", "think")
ends("ok", "Say [INST].", "inert")
ends("ok", "a\ufffdb", "invalid-utf8", "lone-surrogate")
ends("ok", "cut short", "length")

# Broken off, what came is kept.
ends("llm_incomplete.cut", "half of", "cut", "cut-in-a-line", "cut-content-length", "bad-chunk")
ends("llm_incomplete.cut", "a", "reset", "aborted")
ends("llm_incomplete.cut", "", "empty", "cut-thinking", "cut-tool-call", "role-only", "plain-text")
ends("llm_incomplete.frames", "a", "bad-frames")
ends("llm_incomplete.size", "a", "huge-line", "huge-padding")

# The server reports an error inside its reply.
ends("llm_rejected.error_event", "a", "error-data", "error-event", "error-line", "error-string", "error-object")
ends("llm_rejected.error_event", "a", "error-finish", "error-event-empty")
ends("llm_rejected.error_event", "", "error-first", "error-in-json")

# Not a model server, or not this request.
ends("llm_rejected.html", "", "html", "html-untyped", "404-html")
ends("llm_rejected.not_api", "", "json-other", "json-list", "json-no-choices", "bad-gzip")
ends("llm_rejected.key", "", "401")
ends("llm_rejected.forbidden", "", "403")
ends("llm_rejected.not_found", "", "404", "405")
ends("llm_rejected.model", "", "404-model")
ends("llm_rejected.request", "", "400", "422")
ends("llm_rejected.redirect", "", "307", "302-login")

# Not now.
ends("llm_unavailable.reset", "", "reset-first", requests=2)
ends("llm_unavailable.busy", "", "429", requests=2)
ends("llm_unavailable.busy_for", "", "429-wait")
ends("llm_unavailable.server", "", "503", "500-huge", "500-markup", "502-html", "504", "529", requests=2)
ends("llm_unavailable.loading", "", "503-loading", requests=2)
ends("llm_timeout.server", "", "408", requests=2)

# Silence.
ends("llm_timeout.first_token", "", "hang", "pings", "empty-deltas", limit_s=SHORT_S, first_token_s=SHORT_S)
ends("llm_timeout.idle", "a", "idle", "idle-empty-deltas", limit_s=SHORT_S, idle_s=SHORT_S)

# Nothing readable.
ends("malformed_reply", "", "scaffold-only", "blank", "thinking-only", "done-only", "unasked-call", requests=2)
ends("ok", "Hello", "scaffold-once", "blank-once", "thinking-only-once", requests=2)
ends("ok", "Before. After.", "scaffold-mixed")
ends("ok", "Before.", "scaffold-open")

# No connection.
_NO_CONNECTION: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("refused", "llm_unavailable.refused", {"base_url": "http://127.0.0.1:9/v1"}),
    ("unknown-host", "llm_unavailable.dns", {"base_url": "http://no-such-host.invalid:1/v1", "connect_s": 20.0}),
    ("no-tls", "llm_unavailable.tls", {"base_url": "https://127.0.0.1:{port}/ok/v1"}),
    ("no-address", "llm_rejected.address", {"base_url": "http://[::1/v1"}),
    ("bad-key", "llm_rejected.key_shape", {"api_key": "schl\u00fcssel"}),
)
for _name, _end, _endpoint in _NO_CONNECTION:
    CASES[_name] = Case(FAULTS["ok"], _end, "", 0, limit_s=_endpoint.get("connect_s", 5.0), endpoint=_endpoint)

for _name in ("overflow-event", *(f"overflow-{name}" for name in OVERFLOWS)):
    FAMILIES[_name] = Case(FAULTS[_name], "llm_rejected.context", "", 2)
FAMILIES["overflow-once"] = Case(FAULTS["overflow-once"], "ok", "Hello", 2)
for _name in ("tools-refused-event", *(f"tools-{name}" for name in TOOLS_REFUSED)):
    FAMILIES[_name] = Case(only_with_tools(FAULTS[_name]), "ok", "Hello", 2)
for _name, _serve in SHAPED.items():
    FAMILIES[f"calls-{_name}"] = Case(_serve, "ok", "Hello", 2)
