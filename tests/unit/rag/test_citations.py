"""Citations: every marker is checked, and each cited passage shows the sentence that supports the claim."""

from hypothesis import given
from hypothesis import strategies as st

from app.rag.citations import check, source_rows
from app.rag.pieces import Passage
from app.rag.quote_cut import QUOTE_CHARS

PACKS = (
    "Larger packs need fewer files. Restic currently defaults to a 16 MiB pack size.\n"
    "It can be changed with `--pack-size`. More disk space is needed then."
)
LOCKS = "Pruning removes data.\n\nThe repository is locked while prune runs."


def passage(n: int, text: str, char_start: int = 0) -> Passage:
    return Passage(
        n=n,
        document_id=n * 10,
        chunk_id=n * 100,
        path=f"notes/{n}.md",
        title=f"Note {n}",
        heading="Tuning › Packs",
        page=None,
        text=text,
        char_start=char_start,
        char_end=char_start + len(text),
        line_start=3,
        line_end=4,
        score=0.81234,
    )


PASSAGES = (passage(1, PACKS, 500), passage(2, LOCKS))


def test_markers_without_a_passage_are_dropped_and_counted() -> None:
    """A number the model made up never reaches the reader; one marker may be half valid."""
    result = check("So it is [1]. And so [7]. Both [2, 9].", PASSAGES)
    assert (result.valid, result.dropped) == (2, 2)
    assert [cite.n for cite in result.cites] == [1, 2]
    assert result.dropped_spans == ((21, 24),)


def test_the_supporting_sentence_is_found_by_words_and_numbers() -> None:
    """Offsets point into the passage and into its document."""
    answer = "By default a pack has 16 MiB.[1] While it prunes, the repository is locked [2]."
    first, second = check(answer, PASSAGES).cites
    assert first.support is not None
    assert PACKS[first.support.start : first.support.end] == "Restic currently defaults to a 16 MiB pack size."
    assert (first.support.char_start, first.support.char_end) == (500 + 31, 500 + 79)
    assert [PACKS[start:end] for start, end in first.support.marks] == ["defaults to a 16 MiB pack"]
    assert second.support is not None
    assert LOCKS[second.support.start : second.support.end] == "The repository is locked while prune runs."
    assert answer[first.said_start : first.said_end] == "By default a pack has 16 MiB.[1]"
    assert answer[second.start : second.end] == "[2]"


def test_a_claim_that_shares_nothing_has_no_support() -> None:
    """The citation stays, its support is unknown."""
    (cite,) = check("Bananas are yellow [1].", PASSAGES).cites
    assert cite.support is None


def test_one_shared_word_of_many_backs_nothing() -> None:
    """A wrong marker's passage shares a word with almost anything; of a short claim one word may be all."""
    wrong, short = check(
        "The repository of the garden pump, its valve and its filter lie in the shed [2]. Locked [2].", PASSAGES
    ).cites
    assert wrong.support is None
    assert short.support is not None


def test_numbers_are_the_same_however_they_are_written() -> None:
    """Thousands, decimals, words, leading zeros, and a unit that clings to its number."""
    text = (
        "The first disk holds it. The log has 1 500 lines at most. Polling takes 2.5 seconds. "
        "Keep it for 30 days. The job starts at 02 each night. The cache has 256MB."
    )
    read = passage(1, text)
    for claim, expected in (
        ("At most 1,500 are written", "The log has 1 500 lines at most."),
        ("It takes 2,50", "Polling takes 2.5 seconds."),
        ("After thirty they go", "Keep it for 30 days."),
        ("At 2 it begins", "The job starts at 02 each night."),
        ("A size of 256 is used", "The cache has 256MB."),
    ):
        (cite,) = check(f"{claim} [1].", (read,)).cites
        assert cite.support is not None, claim
        assert text[cite.support.start : cite.support.end] == expected


def test_each_mention_of_a_source_has_its_own_support() -> None:
    """A passage cited for two things is right at both; the note shows the first."""
    answer = "It prunes data, which removes some [2]. While pruning it is locked [2]. Bananas are yellow, too [2]."
    row = source_rows(PASSAGES, check(answer, PASSAGES))[1]
    assert row["supports"] == [[0, 21], [23, 65], None]
    assert row["support"] == [0, 21]
    assert source_rows(PASSAGES, check("None.", PASSAGES))[1]["supports"] == []


def test_a_marker_that_stands_alone_backs_what_stands_before_it() -> None:
    """As after a block of code or at the end of a list."""
    answer = "Change it:\n\n```\nrestic backup --pack-size 32\n```\n\n[1]"
    (cite,) = check(answer, PASSAGES).cites
    assert answer[cite.said_start : cite.said_end].startswith("```")
    assert cite.support is not None
    assert PACKS[cite.support.start : cite.support.end] == "It can be changed with `--pack-size`."


def test_markers_that_nothing_precedes_are_checked_too() -> None:
    """No answer breaks the check."""
    assert check("[1]", PASSAGES).cites[0].support is None
    assert check(".. image:: [1]", PASSAGES).valid == 1
    assert check("", PASSAGES).cites == ()


def test_rows_of_the_start_frame_hold_the_contracts_keys_only() -> None:
    """What is known before the answer."""
    row = source_rows(PASSAGES, None)[0]
    assert row == {
        "n": 1,
        "document_id": 10,
        "chunk_id": 100,
        "path": "notes/1.md",
        "title": "Note 1",
        "heading": "Tuning › Packs",
        "page": None,
        "score": 0.812,
    }


def test_rows_of_the_done_frame_tell_cited_from_also_read() -> None:
    """Both kinds hold a quote; only the cited one is marked."""
    cited, read = source_rows(PASSAGES, check("By default it is 16 MiB [1].", PASSAGES))
    assert cited["cited"] is True
    assert cited["support"] == [531, 579]
    assert cited["quote"].startswith("Restic currently defaults to a 16 MiB pack size. It can")
    assert [cited["quote"][start:end] for start, end in cited["marks"]] == ["defaults to a 16 MiB"]
    assert (cited["line_start"], cited["char_start"], cited["char_end"]) == (3, 500, 500 + len(PACKS))
    assert read["cited"] is False
    assert read["support"] is None
    assert read["marks"] == []
    assert read["quote"] == "Pruning removes data. The repository is locked while prune runs."


def test_a_long_quote_is_cut_between_words_around_its_supporting_words() -> None:
    """The reader sees the evidence in the first two lines of the note."""
    text = "Well, " + "filler words go on and on, " * 20 + "until the port is 21027 at last, " + "and more " * 60 + "."
    (row,) = source_rows((passage(1, text),), check("The port is 21027 [1].", (passage(1, text),)))
    assert len(row["quote"]) <= QUOTE_CHARS
    assert row["quote"].startswith("… ")
    assert row["quote"].endswith(" …")
    ((start, end),) = row["marks"]
    assert row["quote"][start:end] == "port is 21027"
    assert end <= 90


WORDS = st.lists(
    st.sampled_from(["port", "21027", "restic", "is", "a\n", "`code`", "end.", "- x", "é。", "[1]"]), max_size=90
)


@given(WORDS, WORDS)
def test_marks_and_supports_are_exact_for_any_text(said: list[str], written: list[str]) -> None:
    """Quotes stay in their limit, marks in their quote, and supports in their passage."""
    text = " ".join(written)
    read = passage(1, text, 7)
    result = check(" ".join(said), (read,))
    for cite in result.cites:
        assert 0 <= cite.said_start <= cite.said_end
        if cite.support:
            assert read.char_start <= cite.support.char_start < cite.support.char_end <= read.char_end
            assert all(cite.support.start <= a < b <= cite.support.end for a, b in cite.support.marks)
    (row,) = source_rows((read,), result)
    assert len(row["quote"]) <= QUOTE_CHARS
    assert "".join(row["quote"].replace("…", "").split()) in "".join(text.split())
    for start, end in row["marks"]:
        assert 0 <= start < end <= len(row["quote"])
        assert row["quote"][start:end].strip()
