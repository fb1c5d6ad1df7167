"""Log set-up, the logfmt encoder, the current turn's id, and redaction of secrets.

One line is one event: a constant event name and `key=value` pairs in a fixed order. Owns the format and the handler;
which line is written when belongs to the callers. No line ever holds question, answer or document text.
"""

import logging
import re
import sys
from contextvars import ContextVar

turn_id_var: ContextVar[str] = ContextVar("turn_id", default="-")

_BARE = re.compile(r'^[^\s"=\x00-\x1f\x7f]+$')
_TOKEN = re.compile(r"(?i)\b(bearer\s+|sk-)[A-Za-z0-9._~+/=-]{4,}")
_CONTROL = {i: f"\\x{i:02x}" for i in [*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029]}


def kv(event: str, **fields: object) -> str:
    """One logfmt line: `event key=value …`, values quoted where they hold spaces, quotes or control characters.

    True and False become 1 and 0, None becomes `-`, floats keep three decimals.
    """
    return " ".join([event, *(f"{key}={_value(value)}" for key, value in fields.items())])


def _value(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    if _BARE.match(text):
        return text.translate(_CONTROL)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').translate(_CONTROL) + '"'


class Redactor(logging.Filter):
    """Replaces known secret values, bearer tokens and `sk-…` keys in every record that passes."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: set[str] = set()

    def add(self, secret: str | None) -> None:
        """Makes `secret` unprintable from now on; values under 6 characters are too common to hide."""
        if secret and len(secret) >= 6:
            self._secrets.add(secret)

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _TOKEN.sub(r"\1***", text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record in place; never drops one."""
        message = record.getMessage()
        cleaned = self.clean(message)
        if cleaned != message:
            record.msg, record.args = cleaned, None
        return True


redactor = Redactor()


class _Formatter(logging.Formatter):
    """`time level logger message`; tracebacks are redacted too, since they quote values."""

    def format(self, record: logging.LogRecord) -> str:
        return redactor.clean(super().format(record))


def setup(level: str) -> None:
    """Sends every record at `level` or above to standard error, once per process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(redactor)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx2", "httpcore2", "openai", "uvicorn.access", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
