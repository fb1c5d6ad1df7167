"""What a connection test says of the window: how large, and who says so."""

import pytest

from app.catalog import load_catalog
from app.upstream.probe import ConnectionReport
from app.web.settings_view import connection_box


@pytest.mark.parametrize(
    ("window", "most", "setting", "words"),
    [
        (32768, None, None, "32,768 tokens, as the server says"),
        (None, 40960, None, "not known before the model is loaded; it could take 40,960 tokens"),
        (None, None, 16384, "16,384 tokens, set by LLM_CONTEXT_TOKENS."),
        (32768, None, 16384, "16,384 tokens, set by LLM_CONTEXT_TOKENS."),
        (
            4096,
            None,
            16384,
            "16,384 tokens, set by LLM_CONTEXT_TOKENS. The server says it has 4,096: what is longer may be cut.",
        ),
        (None, None, None, ""),
    ],
)
def test_the_window_is_shown_with_its_origin(
    window: int | None, most: int | None, setting: int | None, words: str
) -> None:
    """And a setting that the server can't keep is called out."""
    report = ConnectionReport(ok=True, model="m", window=window, most=most)
    facts = connection_box(report, "", load_catalog(), setting).facts
    assert [fact.value for fact in facts if fact.label == "Context window"] == ([words] if words else [])
