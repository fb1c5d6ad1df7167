"""Which language a text is mostly written in: `python -m app.ingest.extract.language`, a list of texts on standard
input, a list of codes on standard output, both JSON.

Owns what of a text is looked at and what counts as a language; telling them apart is `py3langid`'s. Started by
`app.ingest.telling` as a process of its own, so that the model (90 MB) takes memory only meanwhile. It is none of the
extraction child's work: what it reads is text already, and loading the model needs a temporary file.
"""

import os
import re
import sys
from importlib import import_module

import orjson

HEAD_CHARS = 4_000
"""Three milliseconds of text, and enough to be sure."""
_LEAST_LETTERS = 60
"""Below this a heading or a table of figures would decide."""
UNKNOWN = "und"
"""ISO 639-2's word for undetermined."""

NO_LANGUAGE = frozenset({"zxx", "mul", "mis"})
"""Of ISO 639-2: nothing of a language, several, one without a code. `py3langid` says the first of figures and code."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]*>", re.S)
_LETTERS = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str:
    """An ISO 639-1 code (639-3 where there is none), or `UNKNOWN` for what has too few words to tell."""
    words = _CODE.sub(" ", text[:HEAD_CHARS])
    letters = len(_LETTERS.findall(words))
    if letters < _LEAST_LETTERS and not (letters > 8 and not words.isascii()):
        return UNKNOWN
    code, _ = import_module("py3langid").classify(words)
    return UNKNOWN if code in NO_LANGUAGE else str(code)


def main() -> None:  # pragma: no cover - runs in a process of its own
    """Answers one request."""
    os.nice(10)
    heads: list[str] = orjson.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(orjson.dumps([language_of(head) for head in heads]))


if __name__ == "__main__":  # pragma: no cover - as above
    main()
