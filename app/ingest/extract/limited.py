"""`python -m app.ingest.extract.limited BYTES SECONDS PROGRAM ARGUMENT…`: runs another program under limits.

Called by `app.ingest.tesseract`, which cannot limit a child between fork and exec itself: the app has threads. Memory,
CPU time, core files and written files are limited, the program is less urgent than the app, and where the kernel lets
an ordinary user do it, the network is gone.
"""

import os
import resource
import sys
from collections.abc import Sequence

from app.ingest.extract import sandbox

_NICENESS = 10


def limits(memory_bytes: int, cpu_s: int) -> tuple[tuple[int, int], ...]:
    """(resource, value) pairs that are applied."""
    return (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
    )


def main(arguments: Sequence[str]) -> None:  # pragma: no cover - becomes the other program
    """Takes the limits on and becomes the program."""
    memory_bytes, cpu_s, program = int(arguments[0]), int(arguments[1]), arguments[2]
    os.nice(_NICENESS)
    sandbox.leave_network()
    for limit, value in limits(memory_bytes, cpu_s):
        sandbox.lower(limit, value)
    os.execv(program, list(arguments[2:]))  # noqa: S606 - a program found on PATH by the app


if __name__ == "__main__":  # pragma: no cover - as above
    main(sys.argv[1:])
