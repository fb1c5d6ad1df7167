"""A passage's letters among a page's: whatever extraction did to lines, the same words are found."""

import pytest

from app.ingest.extract.pdf_place import MAX_LETTERS, find_runs, letters_of


def found(page: str, passage: str) -> str:
    """What of the passage is found, as the page's characters in the passage's order."""
    letters = letters_of(page)
    runs = find_runs(letters, letters_of(passage))
    return "".join(page[letters.origins[run.page_at + at]] for run in runs for at in range(run.length))


def plain(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def test_lines_that_were_joined_and_words_that_were_broken_are_found_whole() -> None:
    """White space, hyphens at line ends, ligatures and case don't matter."""
    page = "Head\r\nThe of\ufb01ce closes when the connec\x02\r\ntion is lost for more than\r\nFIVE minutes.\r\n12"
    passage = "The office closes when the connection is lost for more than five minutes."
    letters = letters_of(page)
    (*_, last) = runs = find_runs(letters, letters_of(passage))
    assert "".join(letters.text[run.page_at : run.page_at + run.length] for run in runs) == plain(passage).lower()
    assert letters.origins[last.page_at + last.length - 1] == page.index("minutes.") + 6


def test_columns_drawn_row_by_row_are_told_apart() -> None:
    """A run ends where the column does, also where the other column happens to go on with the same letters."""
    left = ["the pump starts at noon when", "the valve has been opened by", "hand and is left open."]
    right = ["bystanders keep a distance", "hands off the hot housing,", "it burns."]
    page = "\r\n".join(f"{one} {other}" for one, other in zip(left, right, strict=True))
    assert found(page, " ".join(left)) == plain("".join(left))
    assert found(page, " ".join(right)) == plain("".join(right))


def test_a_word_that_stands_twice_is_found_where_its_sentence_is() -> None:
    """The longest run decides, so a heading's words are not taken for the sentence's."""
    page = "Battery self test\n\nIntroduction of the unit.\n\nHold the button to start the battery self test now."
    letters = letters_of(page)
    (run,) = find_runs(letters, letters_of("Hold the button to start the battery self test now."))
    assert letters.origins[run.page_at] == page.index("Hold")


def test_the_short_last_line_of_a_paragraph_belongs_to_it() -> None:
    """Words too short to look for are found beside what was."""
    page = "It keeps what you name in the policy of the job and all of beside the other column\nit ok. and more of it"
    assert found(page, "It keeps what you name in the policy of the job and all of it ok.").endswith("allofitok")


def test_words_that_other_pages_share_are_no_passage() -> None:
    """A page that has only scraps of it has none of it."""
    page = "The storage box is in the cellar. Backups are described elsewhere."
    assert found(page, "Every night the nightly job copies all photos to the storage box of the neighbour.") == ""
    assert found("", "anything at all") == ""
    assert found(page, "") == ""


def test_a_passage_of_a_few_letters_is_found_as_a_word() -> None:
    """A cell may be all there is."""
    assert found("Code E04 means hot", "E04") == "E04"
    assert found("CODE4 means hot", "E4") == ""


@pytest.mark.parametrize("passage", ["a" * 5000, "ab" * 2500, "aaaaaab" * 700])
def test_repeated_letters_cost_no_time(passage: str) -> None:
    """A page of one letter over and over is the worst there is; it ends, and nothing is taken twice."""
    page = letters_of("a" * MAX_LETTERS)
    runs = find_runs(page, letters_of(passage))
    taken = [at for run in runs for at in range(run.page_at, run.page_at + run.length)]
    assert len(taken) == len(set(taken))
