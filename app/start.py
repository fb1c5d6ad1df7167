"""The first thing that runs: imports the commands with the garbage collector off, then hands over to `app.cli`.

Nothing an import makes is garbage, and looking for some while a quarter of a million objects are made costs a tenth of
the start. Owns nothing else; called by the console script and by `python -m app`.
"""

import gc


def main() -> int:
    """Runs one command and returns the process's exit code."""
    gc.disable()
    try:
        from app.cli import main as run_command  # noqa: PLC0415 - to be imported while the collector is off
    finally:
        gc.freeze()
        gc.enable()
    return run_command()
