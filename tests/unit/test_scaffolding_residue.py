"""Leaked markers, by the ids of the loop guard's acceptance table (X): the filter strips them, or leaves text alone."""

import pytest

from app.rag.scaffolding import ScaffoldingFilter

MARKERS = [
    '<tool_call>{"name": "read", "arguments": {}}</tool_call>',
    '<function=read>{"path": "a.md"}</function>',
    '[TOOL_CALLS] [{"name": "read", "arguments": {}}]',
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    '<|python_tag|>{"name": "read", "parameters": {}}',
    "<|tool_call_start|>[read(path='a.md')]<|tool_call_end|>",
]


def shown(*chunks: str) -> str:
    content_filter = ScaffoldingFilter()
    return "".join(content_filter.feed(chunk) for chunk in chunks) + content_filter.flush()


@pytest.mark.parametrize("marker", MARKERS)
def test_x64_a_marker_split_over_chunks_or_amid_multibyte_text_is_stripped(marker: str) -> None:
    """At every two cuts, so also in two and in three chunks."""
    for first in range(len(marker)):
        for second in (first, (first + len(marker)) // 2, len(marker)):
            assert shown("Größe 🧊 ", marker[:first], marker[first:second], marker[second:]) == "Größe 🧊 "


@pytest.mark.parametrize("text", ["<tools>", "The <tools> of résumé 🧰 and <tool>.", ""])
def test_x65_what_is_no_marker_is_untouched(text: str) -> None:
    """Whole, by the character, and with empty chunks between."""
    assert shown(text) == text
    assert shown(*[part for char in text for part in (char, "")]) == text
