"""Runs the operator commands as `python -m app`; owns nothing else."""

import sys

from app.start import main

if __name__ == "__main__":
    sys.exit(main())
