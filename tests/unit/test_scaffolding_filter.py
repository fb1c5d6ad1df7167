"""The scaffolding filter: the phase's matrix by name, every boundary of every token, given cases, and properties."""

import itertools
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.rag.scaffolding import ScaffoldingFilter
from app.rag.scaffolding_formats import REGISTRY, Entry
from tests.unit.filtering import CALL, END, START, filtered, seen

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "fixtures" / "scaffolding_cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
ALWAYS = [entry for entry in REGISTRY if entry.kind in ("span", "standalone")]
EXAMPLES = 5000 if os.environ.get("DOCENT_LONG") else 300


def test_span_in_one_chunk_is_stripped() -> None:
    """The incident itself."""
    visible, content_filter = filtered([CALL])

    assert visible == ""
    assert content_filter.stripped_chars == len(CALL)


@pytest.mark.parametrize("cut", range(1, len(START)))
def test_split_start_token_is_held_until_decided(cut: int) -> None:
    """A start token cut anywhere shows nothing of itself."""
    content_filter = ScaffoldingFilter()

    assert content_filter.feed("Hi " + CALL[:cut]) == "Hi "
    assert content_filter.feed(CALL[cut:]) + content_filter.flush() == ""


@pytest.mark.parametrize("entry", ALWAYS, ids=lambda entry: entry.name)
def test_every_token_is_stripped_at_every_cut(entry: Entry) -> None:
    """Spans and standalone tokens of the registry, in prose, cut at every offset."""
    body = (entry.begins[0] if entry.begins else "[") + "x" if entry.kind == "span" else ""
    end = dict(entry.ends_by_begin).get(entry.begins[0] if entry.begins else "", entry.ends[0]) if entry.ends else ""
    text = f"Before {entry.start}{body}{end} after."

    for cut in range(len(text) + 1):
        assert seen(text[:cut], text[cut:]) == "Before  after."


def test_multiple_spans_in_one_chunk() -> None:
    """Text between and around stays, white space included."""
    assert seen(f"One {CALL} two {CALL} three") == "One  two  three"


@pytest.mark.parametrize("token", ["<|tool_calls|>", "<|tool_call|>"])
def test_standalone_tokens_are_stripped(token: str) -> None:
    """The two siblings of the phase's registry."""
    assert seen(f"Sure.{token} The fan is off.") == "Sure. The fan is off."


@pytest.mark.parametrize(
    "text",
    [
        "The tool_call_start marker opens a call and tool_call ends it.",
        "An unknown <|some_other_token|> stays.",
        f"A lone {END} without a start stays.",
        "let n = List.length <| xs",
        "Answers begin with [1] and [2].",
    ],
)
def test_look_alikes_are_not_stripped(text: str) -> None:
    """Words without delimiters, unknown tokens, a lone end token."""
    assert seen(text) == text
    assert seen(*text) == text


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.name)
def test_partial_start_token_at_stream_end_is_given_back(entry: Entry) -> None:
    """No false positive: half a token is text."""
    for cut in range(1, len(entry.start)):
        assert seen("Text " + entry.start[:cut]) == "Text " + entry.start[:cut]


def test_empty_chunks_change_nothing() -> None:
    """Servers send them."""
    assert seen("", "A", "", CALL[:5], "", CALL[5:], "B", "") == "AB"


def test_reset_forgets_held_text_and_keeps_the_count() -> None:
    """Text held by a failed attempt never leaks into the next one."""
    content_filter = ScaffoldingFilter()
    content_filter.feed(f"x{CALL}<|tool_ca")
    content_filter.reset()

    assert content_filter.feed("ll_start|>fine") + content_filter.flush() == "ll_start|>fine"
    assert content_filter.stripped_chars == len(CALL)


def test_strips_are_recorded_and_drained_once() -> None:
    """What the log line needs, at most 200 characters of it."""
    content_filter = ScaffoldingFilter()
    long_call = f"{START}[f(x='{'y' * 500}')]{END}"
    content_filter.feed(long_call + "ok")
    (strip,) = content_filter.drain_strips()

    assert (strip.pattern, strip.chars, strip.terminated) == ("lfm2_call", len(long_call), True)
    assert strip.excerpt == long_call[:200]
    assert content_filter.drain_strips() == []


def test_a_call_cut_off_by_the_stream_is_recorded_as_unterminated() -> None:
    """The operator sees that the end token never came."""
    _, content_filter = filtered(["Well. ", START, "[read(pa"])
    (strip,) = content_filter.drain_strips()

    assert not strip.terminated


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_given_case(case: dict) -> None:
    """As given, as one chunk, and one character per chunk."""
    text = "".join(case["chunks"])
    _as_expected(case, [case["chunks"], [text], list(text)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_given_case_cut_anywhere(case: dict) -> None:
    """In two chunks, at each of its first 400 offsets."""
    text = "".join(case["chunks"])
    _as_expected(case, [[text[:cut], text[cut:]] for cut in range(1, min(len(text), 400))])


def _as_expected(case: dict, ways: list[list[str]]) -> None:
    for chunks in ways:
        visible, content_filter = filtered(chunks)
        assert visible == case["expected_visible"]
        assert content_filter.stripped_chars == case["stripped_chars"]


def test_every_entry_has_evidence_and_a_case() -> None:
    """The registry stays honest: no entry without a source and a stream that shows it."""
    texts = ["".join(case["chunks"]) for case in CASES]
    own = set(json.loads((Path(__file__).parent.parent / "fixtures" / "scaffolding_own.json").read_text("utf-8")))
    for entry in REGISTRY:
        assert entry.evidence
        assert any(entry.start in text for text in texts) or entry.name in own, entry.name


def test_own_fixtures_are_stripped() -> None:
    """Entries that the given cases don't show: one stream each, with what must be left of it."""
    path = Path(__file__).parent.parent / "fixtures" / "scaffolding_own.json"
    for name, (text, expected) in json.loads(path.read_text("utf-8")).items():
        assert seen(text) == expected, name
        assert seen(*text) == expected, name


def test_no_token_is_part_of_another() -> None:
    """The automaton may stop at the first complete token because of this."""
    starts = [entry.start for entry in REGISTRY]
    for token in starts:
        assert sum(token in other for other in starts) == 1, token


PARTS = [
    *(entry.start for entry in REGISTRY),
    *(end for entry in REGISTRY for end in entry.ends),
    *[
        "[a(x=1)]",
        '{"a": 1}',
        '[{"n": "f"}]',
        "`",
        "```\n",
        "~~~",
        "\n",
        "\n\n",
        " ",
        "x",
        "prose text. ",
        "<|",
        "call|>",
    ],
    *[
        "[1]",
        "name",
        "name<arg_key>",
        "<function=f>",
        "<parameter=a>",
        '<invoke name="x">',
        '"',
        "\\",
        "tool_calls>",
        "f(",
    ],
]
STREAMS = st.lists(
    st.one_of(
        st.sampled_from(PARTS),
        st.sampled_from(PARTS).flatmap(lambda part: st.integers(1, len(part)).map(lambda cut: part[:cut])),
        st.text('ab<|>[]{}"`\n ', max_size=5),
    ),
    max_size=14,
).map("".join)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STREAMS, st.lists(st.integers(0, 400), max_size=6))
def test_any_split_gives_the_same_output(text: str, cuts: list[int]) -> None:
    """Chunk boundaries mean nothing; lengths add up; no special token is ever visible."""
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in itertools.pairwise(edges)]
    visible = seen(text)

    assert seen(*text) == visible
    assert seen(*parts) == visible
    assert not any(entry.start in visible for entry in ALWAYS)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=300))
def test_any_text_obeys_the_law_of_lengths(text: str) -> None:
    """`filtered` asserts it."""
    filtered(list(text))


@pytest.mark.parametrize(
    "unit",
    ["<|tool_call", "<tool_call>", f"{START}prose ", "`", "<|im_end|> ", f"{START}[x", "<｜DSML｜", "[TOOL_CALLS]\n"],
)
def test_memory_stays_flat_on_hostile_repetition(unit: str) -> None:
    """However much of it comes, 64 KiB of text and its bookkeeping are held at most."""
    content_filter = ScaffoldingFilter()
    chunk = unit * 8
    tracemalloc.start()
    for _ in range(120_000 // len(chunk)):
        content_filter.feed(chunk)
        content_filter.drain_strips()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 700_000
