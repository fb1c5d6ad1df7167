"""The operator's commands: `docent serve worker migrate ingest search`.

Owns argument parsing and what is printed; each command builds what it needs and calls the same code as the server.
"""

import argparse


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="docent")
    parser.parse_args(argv)
    return 0
