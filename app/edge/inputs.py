"""Types of what a request may hold, shared by every input model.

JSON can spell half of a surrogate pair, which is no character: no database and no page can hold it. Taken in here it
would fail much later, as an error of Docent's.
"""

from typing import Annotated

from pydantic import AfterValidator, Field


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("not a text") from None
    return text


InputText = Annotated[str, AfterValidator(_encodable)]
"""Text that can be stored; anything but half surrogates, NUL included."""

RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]
"""A row's id, in a body or a path: within what a row can have, so that a huge number is 422."""

TurnId = Annotated[str, Field(min_length=1, max_length=32, pattern="^[0-9A-Za-z_-]+$")]
"""A turn's id."""
