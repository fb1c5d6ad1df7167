"""One name for one batch of tool calls, whatever the order of its calls and of their arguments' keys. Pure.

Owns the canonical JSON of arguments, the signature made of it, and how much of a signature may stand in a sentence. The
key that a log keeps of it is `app.store.loop_guard_log.short_hash`. Knows neither messages nor detectors; used by all
of `app.guard`.
"""

import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, cast

import orjson

DEPTH_LIMIT = 16
"""Values this deep in the arguments, and everything below them, are one and the same."""
CUT = "..."
NOTE_CHARS = 240

_LONG_NUMBER = re.compile(r"\d{19}")
_DIGIT = re.compile(r"\d")
_UNPLAIN = re.compile(r"[^\w.:/|-]")


def call_signature(name: str, arguments: object) -> str:
    """`name:` and 16 hex digits of the canonical arguments.

    `arguments` is JSON text, as models send it, or a value; text that isn't JSON stands for itself.
    """
    canonical = canonical_text(arguments) if isinstance(arguments, str) else canonical_json(arguments)
    return f"{name}:{blake2b(canonical, digest_size=8).hexdigest()}"


def batch_signature(signatures: Sequence[str]) -> str:
    """The signature of all calls of one reply, from theirs; their order plays no part."""
    return signatures[0] if len(signatures) == 1 else "|".join(sorted(signatures))


def canonical_text(text: str) -> bytes:
    """Canonical JSON of JSON text; of the text itself, as a JSON string, where it isn't JSON."""
    value = _parsed(text)
    # Fewer brackets than levels: nothing in it can lie at the limit.
    if text.count("{") + text.count("[") >= DEPTH_LIMIT:
        value = _capped(value, 0)
    return _dumped(value)


def canonical_json(value: object) -> bytes:
    """JSON with keys sorted at every level, no blanks, and `"..."` for whatever lies at the depth limit."""
    return _dumped(_capped(value, 0))


def bounded(signature: str) -> str:
    """A signature fit for a sentence: 240 characters at most, and of a client's names only what names are made of."""
    plain = _UNPLAIN.sub("_", signature[: NOTE_CHARS + 1])
    return plain if len(plain) <= NOTE_CHARS else f"{plain[:NOTE_CHARS]}…"


def _parsed(text: str) -> object:
    """orjson is five times as fast, but rounds long integers and refuses what Python's parser takes."""
    # A run of 19 digits has one at every 19th place: most texts are cleared by a look at those.
    if not (_DIGIT.search(text[18::19]) and _LONG_NUMBER.search(text)):
        try:
            return orjson.loads(text)
        except ValueError:
            pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _dumped(value: object) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits, half a surrogate pair
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _capped(value: object, depth: int) -> object:
    if depth >= DEPTH_LIMIT:
        return CUT
    if isinstance(value, dict):
        return {name: _capped(one, depth + 1) for name, one in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_capped(one, depth + 1) for one in cast(list[Any], value)]
    return value
