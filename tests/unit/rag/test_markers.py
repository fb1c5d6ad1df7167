"""Citation markers: what counts as one, and what never does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rag.markers import find_markers, strip_markers, with_numbers


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("So it is [1].", [(1,)]),
        ("So it is.[1][2] And [3]", [(1,), (2,), (3,)]),
        ("So [1, 2] and [3;4] and [1-3] and [2–4].", [(1, 2), (3, 4), (1, 2, 3), (2, 3, 4)]),
        ("16 MiB[1] and [1,1].", [(1,), (1,)]),
        ("As in [1]: yes.", [(1,)]),
        ("[9-2] and [1-900].", [(9, 2), (1, 900)]),
    ],
)
def test_every_written_form_is_read(answer: str, numbers: list[tuple[int, ...]]) -> None:
    """Models write markers in several ways; each number counts once per marker."""
    assert [marker.numbers for marker in find_markers(answer)] == numbers


@pytest.mark.parametrize(
    "answer",
    [
        "[1](https://a.example)",
        "![1](a.png)",
        "[text][1]",
        "\n[1]: https://a.example",
        "[^1] and [ ] and [x] and [0] and [01]",
        "`a[1]` and ``b [2]``",
        "```\nlist[1]\n```",
        r"\[1]",
        "In [2024] and [127.0.0.1] and [1, a]",
        "[]",
        "",
    ],
)
def test_links_code_and_other_brackets_are_no_markers(answer: str) -> None:
    """Taking one of these for a marker would change what the answer says."""
    assert find_markers(answer) == []


def test_markers_are_taken_out_with_the_blank_before_them() -> None:
    """What is left reads as if it had never cited; code keeps its brackets."""
    assert strip_markers("It is so [1].\n- Two.[2] [3]\n`a[1]`") == "It is so.\n- Two.\n`a[1]`"


@given(st.text(st.sampled_from("[]123,-–; a.`(:!\\\n"), max_size=60))
def test_markers_are_in_order_and_cut_exactly(answer: str) -> None:
    """Each span begins and ends with its own brackets."""
    end = 0
    for marker in find_markers(answer):
        assert end <= marker.start < marker.end
        assert answer[marker.start] == "["
        assert answer[marker.end - 1] == "]"
        assert marker.numbers
        end = marker.end


def test_a_copy_holds_the_numbers_that_exist() -> None:
    """Invented ones go with the blank before them, ranges are written out, code stays."""
    text = "One [1]. Two [9]. Three [2, 9]. All [1-3], `[9]` and [9](x).\n\n```\na[9]\n```"
    assert with_numbers(text, {1, 2, 3}) == (
        "One [1]. Two. Three [2]. All [1][2][3], `[9]` and [9](x).\n\n```\na[9]\n```"
    )
