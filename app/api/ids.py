"""Ids as a request may give them: within what a row can have, so that a huge number is 422 and never an error of the
database."""

from typing import Annotated

from pydantic import Field

RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]
"""A row's id, in a body or a path."""

TurnId = Annotated[str, Field(min_length=1, max_length=32, pattern="^[0-9A-Za-z_-]+$")]
"""A turn's id."""
