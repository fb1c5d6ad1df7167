"""When a text has run away: four equal blocks of 80 characters or more, at its end."""

import random
import tracemalloc

import pytest

from app.guard.runaway import BLOCK, LONGEST, SCALES, STEP, RunawayCheck

ALPHABET = "abcdefghij klmnop\nqrstu"


def text_of(chars: int, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(ALPHABET, k=chars))


def found_at(text: str, piece: int = 7) -> int | None:
    """How many characters had been fed when it was found."""
    check = RunawayCheck()
    for at in range(0, len(text), piece):
        if check.feed(text[at : at + piece]):
            return min(at + piece, len(text))
    return None


@pytest.mark.parametrize("block", [80, 81, 97, 100, 159, 160, 161, 500, 2559, 2560, LONGEST])
def test_four_equal_blocks_are_found(block: int) -> None:
    """Of every length from 80 to 5,119, wherever they begin, within a quarter of a block."""
    text = text_of(137, seed=2) + text_of(block) * 5
    found = found_at(text, piece=1)

    assert found is not None
    assert 0 <= found - 137 - 4 * block <= max(STEP, block // 4)


@pytest.mark.parametrize("block", [80, 161, 2560])
def test_three_equal_blocks_and_something_else_pass(block: int) -> None:
    """Quoting a passage three times is no runaway."""
    assert found_at(text_of(137, seed=2) + text_of(block) * 3 + text_of(5000, seed=3)) is None


@pytest.mark.parametrize("block", ["x", "ha ", "\n", "| 0 | 0 |\n", "a" * 100 + "b" * 99])
def test_short_ones_count_as_blocks_of_many(block: str) -> None:
    """320 of one character are four blocks of 80."""
    assert found_at(block * 400) is not None


def test_short_blocks_below_four_times_80_characters_pass() -> None:
    """A rule or a row of signs is none."""
    assert found_at("Text before it. " + "-" * 300 + " Text behind it, and more of that.") is None


def test_blocks_that_differ_in_one_character_pass() -> None:
    """A count that goes up is progress."""
    line = "Step {} of the restore: the pump is off, the valve is closed, the level is checked again.\n"

    assert found_at("".join(line.format(at) for at in range(500))) is None


def test_prose_passes() -> None:
    """A hundred thousand characters of it."""
    assert found_at(text_of(100_000), piece=30) is None


@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_does_not_depend_on_how_the_text_is_cut(seed: int) -> None:
    """One piece, single characters, or any pieces."""
    rng = random.Random(seed)
    text = text_of(rng.randint(0, 900), seed) + text_of(rng.randint(60, 700), seed + 100) * 4 + text_of(50, 7)
    whole = RunawayCheck().feed(text)
    pieces, at = RunawayCheck(), 0
    while at < len(text):
        size = rng.randint(0, 90)
        pieces.feed(text[at : at + size])
        at += size

    assert pieces.found is whole
    assert (found_at(text, piece=1) is not None) is whole


def reference(text: str) -> bool:
    """The rule as it is worded, looked at where the check looks."""
    for end in range(STEP, len(text) + 1, STEP):
        for power, scale in enumerate(SCALES):
            if (end // STEP) % (1 << power):
                continue
            for block in range(scale, 2 * scale):
                if 4 * block <= end and text[end - 3 * block : end] == text[end - 4 * block : end - block]:
                    return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_the_check_finds_what_the_rule_says(seed: int) -> None:
    """Texts of few letters and many repeats, against every block length in turn."""
    rng = random.Random(seed)
    text = ""
    while len(text) < 1500:
        text += "".join(rng.choices("ab", k=rng.randint(1, 120))) * rng.choice([1, 1, 2, 3, 4, 5])

    assert RunawayCheck().feed(text[:1500]) is reference(text[:1500])


def test_memory_is_flat() -> None:
    """However long the text, no more is kept than the longest block needs."""
    check = RunawayCheck()
    part = text_of(20_000)
    tracemalloc.start()
    for at in range(10):
        check.feed(f"{at}{part}")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 40 * LONGEST
    assert kept <= peak


def test_nothing_fed_is_nothing_found() -> None:
    """And once found it stays found."""
    check = RunawayCheck()
    assert not check.feed("")
    assert check.feed("x" * 4 * BLOCK)

    assert check.feed("something else")
