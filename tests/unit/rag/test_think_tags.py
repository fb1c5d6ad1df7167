"""The router of a leading think block: any cut gives the same, and only a leading block is rerouted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.rag.think_tags import ThinkRouter


def route(*parts: str) -> tuple[str, str]:
    router = ThinkRouter()
    routed = [piece for part in parts for piece in router.feed(part)] + list(router.flush())
    assert all(text for _, text in routed)
    return tuple("".join(text for kind, text in routed if kind == wanted) for wanted in ("thinking", "content"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "thinking", "content"),
    [
        ("<think>why</think>So.", "why", "So."),
        ("\n <think>\nwhy\n</think>\n\nSo.", "\nwhy\n", "\n\nSo."),
        ("<think></think>So.", "", "So."),
        ("</think>So.", "", "So."),
        (" </think>So.", "", "So."),
        ("So <think>no</think>.", "", "So <think>no</think>."),
        ("So.</think>", "", "So.</think>"),
        ("<thinking>no", "", "<thinking>no"),
        ("<think>never closed </thin", "never closed </thin", ""),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
        ("<think>1 < 2 </ thing</think>x", "1 < 2 </ thing", "x"),
        ("<thi", "", "<thi"),
        ("", "", ""),
        ("  ", "", "  "),
        pytest.param("\n" * 1024 + "<think>why", "why", "", id="as many blanks as may precede"),
        pytest.param("\n" * 1025 + "<think>no", "", "\n" * 1025 + "<think>no", id="one more"),
    ],
)
def test_every_cut_of_a_reply_is_routed_alike(text: str, thinking: str, content: str) -> None:
    """Whole, cut once anywhere, and one character at a time."""
    assert route(text) == (thinking, content)
    for cut in range(len(text) + 1):
        assert route(text[:cut], text[cut:]) == (thinking, content)
    assert route(*text) == (thinking, content)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", " ", "a", "\n"]), max_size=12))
def test_any_cut_of_any_mix_of_tags_is_routed_alike(parts: list[str]) -> None:
    """The pieces a server happens to send never matter."""
    assert route(*parts) == route("".join(parts)) == route(*"".join(parts))


def test_blanks_without_end_are_not_held() -> None:
    """A reply of nothing else would be looked at from its beginning with every piece."""
    router = ThinkRouter()
    assert list(router.feed("\n" * 1024)) == []
    assert list(router.feed("\n")) == [("content", "\n" * 1025)]
    assert list(router.feed("\n")) == [("content", "\n")]
