"""The built-in answerer: what a newcomer sees before any model is connected."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog import load_catalog
from app.rag.citations import check
from app.rag.pieces import Passage, StreamPiece, Strip
from app.rag.prompts import (
    PastTurn,
    build_deflect_prompt,
    build_grounded_prompt,
    build_messages,
    build_without_documents_prompt,
)
from app.rag.quoting import answer_parts, make_quoting_chat, quoting_texts

TEXTS = quoting_texts(load_catalog())

TUNING = (
    "Pack size\n~~~~~~~~~\n\nLarger packs mean fewer files in the repository. This helps on slow disks. "
    "Restic currently defaults to a 16 MiB pack size. The cache is not affected.\n\nChange it with an option:\n\n"
    "```sh\nrestic backup --pack-size 32 /srv\n```\n"
)
BORG = "Borg keeps segments of 500 MiB. A repository can be moved. Is it safe to do so?"
CODES = "| Code | Meaning |\n|---|---|\n| 0 | Success |\n| 12 | Wrong password |\n"


def passage(n: int, text: str, path: str = "", heading: str = "") -> Passage:
    return Passage(n, n, n, path or f"{n}.md", "", heading, None, text, 0, len(text), 1, 1, 0.9)


PASSAGES = (
    passage(1, TUNING, "restic/tuning.rst", "Tuning › Pack size"),
    passage(2, BORG, "borg/segments.md"),
    passage(3, CODES, "restic/codes.md", "Exit codes"),
)


def answer(question: str, passages: Sequence[Passage] = PASSAGES, history: Sequence[PastTurn] = ()) -> str:
    messages = build_messages(build_grounded_prompt(passages), history, question)
    return "".join(answer_parts(messages, TEXTS))


def test_the_answer_says_what_it_is_and_begins_with_the_best_sentence() -> None:
    """Word for word, with the number of its passage."""
    paragraphs = answer("what pack size does restic default to?").split("\n\n")
    assert paragraphs[0] == "No model is connected, so these are the sentences that fit best, word for word."
    assert paragraphs[1].startswith("Restic currently defaults to a 16 MiB pack size. [1]")


def test_a_code_span_over_two_lines_is_never_cut() -> None:
    """Options at the start of a wrapped line are still inside of it."""
    text = (
        "Keep daily snapshots for a month and yearly ones for long, you can instead specify ``forget\n"
        "--keep-within-daily 1m\n--keep-within-yearly 75y`` (note that ``1w`` is not known).\n"
    )
    said = answer("How do I keep snapshots for a month?", (passage(1, text),))
    assert said.count("``") % 2 == 0
    assert "``forget --keep-within-daily 1m --keep-within-yearly 75y``" in said


def test_a_sentence_is_quoted_before_an_item_that_goes_on_with_one() -> None:
    """An item in small letters says little without what stands above its list."""
    text = "Old snapshots are removed by the forget command.\n\n- old snapshots removed by hand\n- something else\n"
    first = answer("How are old snapshots removed?", (passage(1, text),)).split("\n\n")[1]
    assert first.startswith("Old snapshots are removed by the forget command.")


def test_every_quote_passes_the_citation_check_with_support() -> None:
    """The built-in answerer is held to the same check as a model."""
    text = answer("what pack size does restic default to?")
    result = check(text, PASSAGES)
    assert result.dropped == 0
    assert result.valid >= 3
    for cite in result.cites:
        assert cite.support is not None
        assert PASSAGES[cite.n - 1].text[cite.support.start : cite.support.end].split()[0] in text


def test_a_command_comes_with_the_sentence_that_introduces_it() -> None:
    """Whole, fenced, and the marker on the sentence."""
    assert "Change it with an option: [1]\n\n```sh\nrestic backup --pack-size 32 /srv\n```" in answer(
        "how do I change the pack size with an option?"
    )


def test_text_after_a_block_of_code_is_a_paragraph_of_its_own() -> None:
    """Joined to the closing fence it would become part of the code."""
    text = "Run it:\n\n```\nrestic check\n```\n\n"
    text += "The check of the whole repository takes an hour or two and reads every pack again."
    assert "```\n\nThe check" in answer("restic check", [passage(1, text)])


def test_code_that_nothing_introduces_is_cited_after_it() -> None:
    """A marker inside of code would be code."""
    text = answer("max_retries", [passage(1, "```yaml\nregulation:\n  max_retries: 3\n```")])
    assert text.endswith("```yaml\nregulation:\n  max_retries: 3\n```\n\n[1]")
    assert check(text, [passage(1, "```yaml\nregulation:\n  max_retries: 3\n```")]).valid == 1


def test_a_row_of_a_table_can_be_the_answer() -> None:
    """Its heading helps to find it."""
    assert answer("restic exit code 12").split("\n\n")[1].startswith("12 · Wrong password [3]")


def test_what_two_passages_say_alike_is_said_once() -> None:
    """Near-duplicates are left out."""
    twins = [
        passage(1, "The GUI listens on port 8384 by default."),
        passage(2, "By default the GUI listens on port 8384!"),
    ]
    text = answer("which port does the gui use", twins)
    assert text.count("8384") == 1


def test_both_halves_of_a_question_are_answered() -> None:
    """Words that are covered count less, so the second topic gets its sentence."""
    text = answer("how large are packs in restic and segments in borg?")
    assert "16 MiB" in text
    assert "500 MiB" in text


def test_a_follow_up_is_read_with_the_question_before_it() -> None:
    """As the gate searched it."""
    text = answer("and what is it by default?", history=[PastTurn("restic pack size", "It can be changed.")])
    assert "Restic currently defaults to a 16 MiB pack size. [1]" in text


def test_without_a_common_word_the_best_ranked_passages_speak() -> None:
    """A question in other words, or another language: retrieval found the passages, so they are shown."""
    text = answer("¿por qué?")
    assert text.startswith(TEXTS.opening)
    assert "[1]" in text


def test_at_most_five_quotes_are_given() -> None:
    """Enough to see, not a second document."""
    many = [passage(n, f"Port {n} is for service {n * 7}. Nothing else is known of port {n}.") for n in range(1, 13)]
    assert 3 <= check(answer("which port is for which service", many), many).valid <= 5


def test_passages_without_a_sentence_are_only_listed() -> None:
    """It says so instead of opening a list of nothing."""
    assert answer("what?", [passage(1, "---\n\n***\n")]) == TEXTS.no_sentence


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (
            build_deflect_prompt(documents=1429),
            "Your documents don't say. All 1,429 were searched, and no passage is close enough to this question to "
            "answer from.",
        ),
        (
            build_deflect_prompt(documents=1),
            "Your documents don't say. The only document was searched, and no passage is close enough to this question "
            "to answer from.",
        ),
        (build_deflect_prompt(documents=0), TEXTS.nothing_to_read),
        (build_without_documents_prompt(), TEXTS.needs_model),
    ],
)
def test_without_passages_it_says_why_in_the_catalogs_words(system: str, expected: str) -> None:
    """Deflected, empty library, or asked to answer without documents."""
    assert "".join(answer_parts(build_messages(system, (), "q"), TEXTS)) == expected


def stream(content_filter: object = None) -> list[StreamPiece]:
    messages = build_messages(build_grounded_prompt(PASSAGES), (), "restic pack size")

    async def run() -> list[StreamPiece]:
        chat = make_quoting_chat(TEXTS)
        return [piece async for piece in chat(messages, tools=None, content_filter=content_filter)]  # type: ignore[arg-type, misc]

    return asyncio.run(run())


def test_it_streams_in_pieces_and_ends_like_a_model() -> None:
    """The same frames, the same checks: content pieces, then usage with a finish reason."""
    pieces = stream()
    assert [piece.kind for piece in pieces[:-1]] == ["content"] * (len(pieces) - 1)
    assert len(pieces) > 3
    assert "".join(piece.text for piece in pieces) == answer("restic pack size")
    assert pieces[-1].data == {"prompt_tokens": None, "completion_tokens": None, "finish_reason": "stop"}
    assert stream() == pieces


def test_a_content_filter_sees_every_character() -> None:
    """Document text may hold what a filter is there to take out."""

    class Upper:
        stripped_chars = 0

        def feed(self, text: str) -> str:
            return "" if text.startswith("No model") else text.upper()

        def flush(self) -> str:
            return "!"

        def reset(self) -> None: ...

        def drain_strips(self) -> list[Strip]:
            return []

    text = "".join(piece.text for piece in stream(Upper()))
    assert text == answer("restic pack size").removeprefix(TEXTS.opening).upper() + "!"


@given(st.lists(st.text(st.sampled_from("ab1 .\n`*-#|>[]:<"), max_size=80), max_size=3), st.text(max_size=20))
def test_any_passage_can_be_quoted_without_a_false_citation(texts: list[str], question: str) -> None:
    """Whatever stands in the documents, each marker names the passage it is quoted from."""
    passages = [passage(n, text) for n, text in enumerate(texts, 1)]
    result = check(answer(question, passages), passages)
    assert result.dropped == 0
    assert result.valid <= 5
