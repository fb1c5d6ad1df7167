"""What a reader is shown of a call's arguments, at the edges of JSON."""

import json

import pytest

from app.rag.tool_steps import shown_arguments


@pytest.mark.parametrize("number", ["1e999", "-1e999", "[1e999]"])
def test_a_number_beyond_every_float_is_shown_as_text(number: str) -> None:
    """It is JSON on the way in; on the way out no frame could hold what it becomes."""
    shown = shown_arguments(f'{{"offset": {number}}}')
    assert "Infinity" in shown["offset"]
    json.dumps(shown, allow_nan=False)
