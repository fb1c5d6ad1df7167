"""The scaffolding filter at its edges: what is recorded, what is given back, where a look ahead ends, neighbours."""

import itertools

import pytest

from app.rag.scaffolding import ScaffoldingFilter
from app.rag.scaffolding_formats import REGISTRY, TAG_CLOSERS, Entry
from tests.unit.filtering import CALL, END, START, filtered, seen

LOOK = 2048
HELD = 64 * 1024
LONGEST = max(len(entry.start) for entry in REGISTRY)
WORDS = "words that are no call; "


def whole_call(entry: Entry) -> str:
    """A complete leak of one format."""
    if entry.kind == "span":
        begin = entry.begins[0] if entry.begins else "["
        return f"{entry.start}{begin}x{dict(entry.ends_by_begin).get(begin, entry.ends[0])}"
    if entry.kind == "tag":
        payload = {"<function=": 'f>{"a": 1}', "[Calling tool: ": 'f({"a": 1}'}.get(entry.start, '{"a": 1}')
        return entry.start + payload + entry.closers[0]
    return entry.start + ('{"a": 1}' if entry.payload else "")


CALLS = {entry.name: whole_call(entry) for entry in REGISTRY if entry.kind != "terminal"}


@pytest.mark.parametrize("name", CALLS)
def test_two_calls_in_a_row_both_go(name: str) -> None:
    """Whatever two formats meet, directly or with a blank or a word between them, in one chunk or in single ones."""
    for other, between in itertools.product(CALLS.values(), ("", " ", " and ")):
        text = f"A{CALLS[name]}{between}{other}B"
        assert seen(text) == f"A{between}B"
        assert seen(*text) == f"A{between}B"


@pytest.mark.parametrize(
    ("text", "visible", "strips"),
    [
        (f"a{CALL}b", "ab", [("lfm2_call", CALL, True)]),
        (f"{CALL}{END}{END}b", "b", [("lfm2_call", CALL + END + END, True)]),
        (f"{CALL}{CALL[len(START) :]} b", " b", [("lfm2_call", CALL + CALL[len(START) :], True)]),
        (f"{START}[f()]{END}[f(", "[f(", [("lfm2_call", f"{START}[f()]{END}", True)]),
        (f"{START}[f(", "", [("lfm2_call", f"{START}[f(", False)]),
        (START, "", [("lfm2_call", START, False)]),
        (f"{START} \n", "", [("lfm2_call", f"{START} \n", False)]),
        (f"{START}word", "word", [("lfm2_call", START, False)]),
        (f"{START} two words", " two words", [("lfm2_call", START, False)]),
        (f'{START}{{"a": 1}} and words', " and words", [("lfm2_call", f'{START}{{"a": 1}}', False)]),
        (f'{START}{{"a": 1}}', "", [("lfm2_call", f'{START}{{"a": 1}}', False)]),
        (f'{START}{{"a": ', "", [("lfm2_call", f'{START}{{"a": ', False)]),
        ('<tool_call>{"a": 1}', "", [("hermes_call", '<tool_call>{"a": 1}', True)]),
        (
            '<tool_call> \n{"a": 1}\n</tool_call> b',
            " b",
            [("hermes_call", '<tool_call> \n{"a": 1}\n</tool_call>', True)],
        ),
        ('<tool_call>{"a": 1} \n b', " \n b", [("hermes_call", '<tool_call>{"a": 1}', True)]),
        ('<tool_call>{"a": 1}\n</tool', "\n</tool", [("hermes_call", '<tool_call>{"a": 1}', True)]),
        ('<tool_call>{"a": 1', "", [("hermes_call", '<tool_call>{"a": 1', False)]),
        ('<tool_call>\n<tool_call>{"a": 1}x', "x", [("hermes_call", '<tool_call>\n<tool_call>{"a": 1}', True)]),
        ("<tool_call>", "", [("hermes_call", "<tool_call>", False)]),
        ("<tool_call>rea", "", [("hermes_call", "<tool_call>rea", False)]),
        ("<tool_call> opens", "<tool_call> opens", []),
        ("<tool_call> <tool_call> no call", "<tool_call> <tool_call> no call", []),
        ("<tool_call>f</tool_call>x", "x", [("hermes_call", "<tool_call>f</tool_call>", True)]),
        (
            "<tool_call><function=f><parameter=a>1</parameter></function> b",
            " b",
            [("hermes_call", "<tool_call><function=f><parameter=a>1</parameter></function>", True)],
        ),
        (
            "<function=f><parameter=a>1</parameter></tool_call> b",
            " b",
            [("qwen3_function", "<function=f><parameter=a>1</parameter></tool_call>", True)],
        ),
        (
            '<function_calls><invoke name="f"></function_calls>b',
            "b",
            [("claude_function_calls", '<function_calls><invoke name="f"></function_calls>', True)],
        ),
        ("<|python_tag|>f.g(x=1)<|eom_id|>", "", [("llama3_python_tag", "<|python_tag|>f.g(x=1)<|eom_id|>", True)]),
        ("a<|tool_calls|>b", "ab", [("tool_calls_marker", "<|tool_calls|>", True)]),
        ("<|tool_call|>", "", [("granite_phi_call", "<|tool_call|>", False)]),
        ("<|tool_call|> \n", " \n", [("granite_phi_call", "<|tool_call|>", False)]),
        ("<|tool_call|>[ ", "", [("granite_phi_call", "<|tool_call|>[ ", False)]),
        ("<|tool_call|>\n[{}] b", " b", [("granite_phi_call", "<|tool_call|>\n[{}]", True)]),
        ("<|tool_call|> [1] b", " [1] b", [("granite_phi_call", "<|tool_call|>", True)]),
        (
            "Done. <|im_end|>\n<|eot_id|>\n",
            "Done. \n\n",
            [("end_of_turn_im_end", "<|im_end|>", True), ("end_of_turn_eot_id", "<|eot_id|>", True)],
        ),
        ("Done.<|im_end|> More.", "Done.<|im_end|> More.", []),
    ],
)
def test_what_is_removed_is_recorded(text: str, visible: str, strips: list[tuple[str, str, bool]]) -> None:
    """Format, text and whether it had ended: for each kind of call, whole and cut off, at every cut."""
    for cut in range(len(text) + 1):
        shown, content_filter = filtered([text[:cut], text[cut:]])
        found = content_filter.drain_strips()
        assert shown == visible
        assert [(strip.pattern, strip.excerpt, strip.terminated) for strip in found] == strips
        assert [strip.chars for strip in found] == [len(strip.excerpt) for strip in found]


@pytest.mark.parametrize("closer", TAG_CLOSERS)
def test_any_familys_closer_goes_with_a_call(closer: str) -> None:
    """Once, and with the blanks before it; the next call is a call of its own."""
    text = f'<tool_call>{{"a": 1}}\n{closer}\n<tool_call>{{"b": 2}}{closer}.'
    assert seen(text) == "\n."
    assert seen(*text) == "\n."


@pytest.mark.parametrize(
    ("before", "after", "blanks", "goes"),
    [
        ("<|tool_call|>", "{}", LOOK - 1, True),
        ("<|tool_call|>", "{}", LOOK, False),
        ("<tool_call>", "{}", LOOK - 1, True),
        ("<tool_call>", "{}", LOOK, False),
        ("<tool_call>{}", "</tool_call>", LOOK - len("</tool_call>"), True),
        ("<tool_call>{}", "</tool_call>", LOOK, False),
    ],
)
def test_a_look_ahead_ends(before: str, after: str, blanks: int, goes: bool) -> None:
    """2,048 characters decide; what is given back then stays as it was."""
    text = f"A{before}{' ' * blanks}{after} B"
    whole = seen(text)
    assert seen(*[text[at : at + 50] for at in range(0, len(text), 50)]) == whole
    assert whole == ("A B" if goes else text if before == "<tool_call>" else f"A{' ' * blanks}{after} B")


@pytest.mark.parametrize("start", [START, "<|tool_call_begin|>", "<｜DSML｜"])
@pytest.mark.parametrize("step", [1000, 71, 10**6])
def test_a_body_that_is_no_call_is_given_back(start: str, step: int) -> None:
    """Without its end token a start token eats no prose, however long that is; a start token in it goes as well."""
    prose = WORDS * (HELD // len(WORDS) + 100)
    text = f"A {start}{prose}{start}{WORDS}B"
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    visible, content_filter = filtered(chunks)
    assert visible == f"A {prose}{WORDS}B"
    assert [(strip.chars, strip.excerpt) for strip in content_filter.drain_strips()] == [(len(start), start)] * 2


@pytest.mark.parametrize("step", [1000, 71, 10**6])
def test_a_body_that_is_no_call_waits_for_its_end_up_to_64_kib(step: int) -> None:
    """With its end token inside that much it goes whole; one character later it has been given back."""
    fits = (WORDS * HELD)[: HELD + 1 - len(END)]
    for body, visible in ((fits, ""), (fits + "!", fits + "!" + END)):
        text = START + body + END
        assert seen(*[text[at : at + step] for at in range(0, len(text), step)]) == visible
    content_filter = ScaffoldingFilter()
    assert content_filter.feed(START + "!" * HELD) == ""
    assert content_filter.feed("!") == "!" * (HELD + 1)


def test_a_long_call_goes_whole() -> None:
    """A body shaped like a call is removed whatever its length, and its end token is found across chunks."""
    call = f"{START}[f(x='{'y' * 200_000}')]{END}"
    for step in (19, 30, 4096, 10**6):
        visible, content_filter = filtered(["A", *[call[at : at + step] for at in range(0, len(call), step)], "B"])
        (strip,) = content_filter.drain_strips()
        assert (visible, strip.chars, strip.excerpt, strip.terminated) == ("AB", len(call), call[:200], True)


@pytest.mark.parametrize(("length", "goes"), [(4096, True), (4097, False)])
def test_an_echo_is_known_up_to_its_length(length: int, goes: bool) -> None:
    """A body that is 4,096 characters with its end is compared with what follows; a longer one is not."""
    body = f"[f(x='{'y' * (length - len(END) - 9)}')]" + END
    assert len(body) == length
    text = f"{START}{body}{body} B"
    for step in (17, 10**6):
        assert seen(*[text[at : at + step] for at in range(0, len(text), step)]) == (" B" if goes else f"{body} B")


def test_reset_records_a_call_that_had_ended_and_forgets_one_that_had_not() -> None:
    """Between attempts: what was removed stays counted, what was only begun was never sent."""
    for begun, count in ((CALL, len(CALL)), (f"{START}[f(", 0), ('<tool_call>{"a": 1}', 19), ('<tool_call>{"a"', 0)):
        content_filter = ScaffoldingFilter()
        content_filter.feed("x" + begun)
        content_filter.reset()
        assert content_filter.stripped_chars == count
        assert [strip.chars for strip in content_filter.drain_strips()] == ([count] if count else [])
        assert content_filter.feed("plain `") == "plain `"
        assert content_filter.flush() == ""


@pytest.mark.parametrize(
    ("code", "is_code"),
    [
        ("`", True),
        ("``", True),
        ("` ``", True),
        ("` `", False),
        ("`` ` ``", False),
        ("`a\n", True),
        ("`a\n\n", False),
        ("`a\n \n", False),
        ("```\n", True),
        ("```py\n", True),
        ("a ```\n", True),
        ("a ```\n\n", False),
        ("```\nx\n```\n", False),
        ("```\nx\n``` \n", False),
        ("```\nx\n```x\n", True),
        ("```\nx\n``\n", True),
        ("```\nx\n````\n", False),
        ("````\nx\n```\n", True),
        ("```\n\n", True),
        ("```\n~~~\n", True),
        ("~~~\nx\n", True),
        ("~~~\nx\n~~~\n", False),
        ("~~\n", False),
        ("~\n", False),
        ("a ~~~\n", False),
        ("  ```\n", True),
        ("```\nx\n  ```\n", False),
        ("```\n`\n```\n", False),
        ("```\nx\n```\n`", True),
        ("```\nx ```\n", True),
    ],
)
def test_a_tag_in_code_is_text(code: str, is_code: bool) -> None:
    """Code spans end at a blank line, fences at their like: short, after long text, and at every cut."""
    call = '<tool_call>{"a": 1}</tool_call>'
    for text in (code, "Prose.\n\n" + code, "long line " * 500 + "\n\n" + code, "line\n" * 1000 + code):
        expected = text + (call if is_code else "") + "."
        assert seen(f"{text}{call}.") == expected
        assert seen(*f"{text}{call}.") == expected
        assert seen(*text, call, ".") == expected


def test_a_removal_builds_no_token() -> None:
    """Halves of a token that a removed call kept apart are that token: it goes, but for what was too long to hold."""
    for entry in (one for one in REGISTRY if one.kind in ("span", "standalone")):
        for cut in range(1, len(entry.start)):
            text = f"A {entry.start[:cut]}{CALL}{entry.start[cut:]}"
            sent = max(0, cut + len(START) - LONGEST)
            assert seen(text) == "A " + entry.start[:sent]
            assert seen(*[text[at : at + 5] for at in range(0, len(text), 5)]) == "A " + entry.start[:sent]


def test_halves_that_are_no_token_stay() -> None:
    """What a removal brings together is shown, character by character, when it begins nothing."""
    for text in ("<|tool_", "<|tool_call", "<|im_", "[Call", "<", "[1] <|"):
        assert seen(f"A {text}{CALL}{text} B") == f"A {text}{text} B"
        assert seen(*f"A {text}{CALL}{text} B") == f"A {text}{text} B"


def test_turn_ends_wait_up_to_their_length() -> None:
    """4,096 characters of end-of-turn tokens may be the end of the stream; more of them are text."""
    token = "<|im_end|>"
    fits = 4096 // len(token)
    assert seen("A" + token * fits) == "A"
    more = "A" + token * (fits + 1)
    assert seen(more).startswith("A" + token)
    assert seen(*more) == seen(more)
    blanks = " " * (4096 - len(token))
    assert seen(f"A{token}{blanks}") == f"A{blanks}"
    assert seen(f"A{token}{blanks} ") == f"A{token}{blanks} "
