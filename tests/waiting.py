"""Waiting on a state, with a deadline."""

import threading
import time
from collections.abc import Callable

STEP_S = 0.02


def until(is_so: Callable[[], bool], what: str, timeout_s: float = 30, *, step_s: float = STEP_S) -> None:
    """Returns once `is_so()` is true, asked every `step_s`; fails the test naming `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    resting = threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        resting.wait(step_s)
