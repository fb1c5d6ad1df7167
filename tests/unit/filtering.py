"""A reply through the scaffolding filter, and the call that started it all."""

from app.rag.scaffolding import ScaffoldingFilter

START = "<|tool_call_start|>"
END = "<|tool_call_end|>"
CALL = f"{START}[read(path='/homelab/backup-notes.md')]{END}"


def filtered(chunks: list[str]) -> tuple[str, ScaffoldingFilter]:
    """What a reader sees of `chunks`; the law of lengths holds each time."""
    content_filter = ScaffoldingFilter()
    visible = "".join([content_filter.feed(chunk) for chunk in chunks]) + content_filter.flush()
    assert sum(map(len, chunks)) == len(visible) + content_filter.stripped_chars
    return visible, content_filter


def seen(*chunks: str) -> str:
    """Only the visible text."""
    return filtered(list(chunks))[0]
