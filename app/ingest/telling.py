"""A process that tells languages (`app.ingest.extract.language`): started for one batch, ended with it.

Owns starting, the time it may take, and ending it from another thread. Used by `app.ingest.language_work`.
"""

import subprocess
import sys
from collections.abc import Sequence

import orjson

from app.ingest.errors import IngestError
from app.ingest.extract.pipes import ROOT, kept_environment

WALL_S = 60.0


class Telling:
    """One batch's process."""

    def __init__(self, module: str = "app.ingest.extract.language", wall_s: float = WALL_S) -> None:
        self._wall_s = wall_s
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module, no user's words
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=kept_environment(),
            start_new_session=True,
        )

    def languages(self, heads: Sequence[str]) -> list[str]:
        """The language of each text, given as its beginning; as many codes as texts.

        Raises:
            IngestError: timeout, or internal where the process fails or was ended.
        """
        asked = orjson.dumps([head.encode("utf-8", "replace").decode() for head in heads])
        try:
            answer, _ = self._process.communicate(asked, timeout=self._wall_s)
            codes: list[str] = orjson.loads(answer)
        except subprocess.TimeoutExpired:
            raise IngestError("timeout") from None
        except (OSError, ValueError):
            raise IngestError("internal") from None
        if len(codes) != len(heads):
            raise IngestError("internal")
        return codes

    def close(self) -> None:
        """Ends the process; safe to call twice, and while another thread waits for it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
