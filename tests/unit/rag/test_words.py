"""Content words: what is compared when a claim meets a passage."""

import pytest

from app.rag.words import content_words, rarity, stem, stems, weight


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("backup", "backups"),
        ("prune", "pruning"),
        ("store", "stored"),
        ("expire", "expires"),
        ("policy", "policies"),
        ("stop", "stopped"),
        ("index", "indexes"),
        ("match", "matches"),
        ("default", "defaulting"),
    ],
)
def test_forms_of_a_word_meet(one: str, other: str) -> None:
    """A claim in other grammar still finds its sentence."""
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["16gb", "status", "less", "bus", "is"])
def test_short_words_and_numbers_stay_apart_from_others(word: str) -> None:
    """An ending is only cut where enough of the word is left."""
    assert stem(word) == word


def test_stop_words_carry_nothing() -> None:
    """They would make every sentence alike."""
    assert stems("What is the default of it, and how do I use that?") == {stem("default")}


def test_a_compound_counts_whole_and_in_parts() -> None:
    """So that `keep-within` and `keep within` meet, and an address is still itself."""
    assert stems("--keep-daily 127.0.0.1:8384") >= {"keep-daily", "keep", stem("daily"), "127.0.0.1:8384", "8384"}


def test_cjk_text_is_taken_by_pairs() -> None:
    """There are no blanks to part words by."""
    assert stems("管理界面") == {"管理", "理界", "界面"}
    assert stems("改") == {"改"}


def test_words_know_their_place() -> None:
    """Marks are drawn from it."""
    text = "The default: `pack-size`."
    assert [text[word.start : word.end] for word in content_words(text)] == ["default", "pack-size", "pack", "size"]


def test_rare_words_and_numbers_weigh_more() -> None:
    """A word that stands everywhere tells little; one never counted tells nothing."""
    told = rarity([{"a", "b"}, {"a", "16"}, {"a", "c"}])
    assert told["a"] < told["b"] < told["16"]
    assert weight(["a", "b", "unknown"], told) == told["a"] + told["b"]
