"""Types of what a request may hold, shared by every input model.

JSON can spell half of a surrogate pair, which is no character: no database and no page can hold it. Taken in here it
would fail much later, as an error of Docent's.
"""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from app.store.loop_guard_log import clamped_days


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("not a text") from None
    return text


def _whole(value: object) -> object:
    """Only digits with a sign are a number here: neither 1.5 nor 1e3 nor digits of another script."""
    if isinstance(value, str):
        digits = value.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdecimal()):
            raise ValueError("not a whole number")
        if len(digits) > 9:  # beyond any window; as a number of its own it could be too long to read
            return -1 if value.startswith("-") else 10**9
    return value


InputText = Annotated[str, AfterValidator(_encodable)]
"""Text that can be stored; anything but half surrogates, NUL included."""

RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]
"""A row's id, in a body or a path: within what a row can have, so that a huge number is 422."""

Moment = Annotated[AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))]
"""A point in time with its zone, far enough from the ends of the calendar to be told in another zone."""

GuardDays = Annotated[int, BeforeValidator(_whole), AfterValidator(clamped_days)]
"""A window of the loop guard's log; beyond 1 to 90 days it is the nearer of the two."""

TurnId = Annotated[str, Field(min_length=1, max_length=32, pattern="^[0-9A-Za-z_-]+$")]
"""A turn's id."""
