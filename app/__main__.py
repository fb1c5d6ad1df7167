"""Runs the operator commands as `python -m app`; owns nothing else."""

from app.cli import main

if __name__ == "__main__":
    main()
