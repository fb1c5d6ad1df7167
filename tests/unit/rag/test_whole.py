"""A question answered from a whole document: at once, or from notes on every section."""

import pytest

from app.rag.citations import check
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.markers import find_markers
from app.rag.pieces import StreamPiece
from app.rag.prompts import NO_ANSWER_SENTENCE, PastTurn, parse_passages
from app.rag.whole_plan import SECTIONS
from app.rag.whole_prompts import NOTHING_SENTENCE, parse_notes
from tests.unit.rag.reading_kit import Model, Played, chaptered, reading_of

TOO_LONG = LLMError("context_overflow", retryable=False)
BROKEN = LLMError("llm_incomplete", reason="cut")
KEY = LLMError("llm_rejected", reason="key", retryable=False)


def test_a_document_that_fits_is_given_whole_in_one_request() -> None:
    """Every passage, in order; no line, no tools, and the talk before it where there is room."""
    talk = [PastTurn("what is it?", "A plan [3].")]
    reading, model = reading_of(chaptered(3), 8_000, history=talk), Model()
    assert reading.fits
    assert not reading.is_empty
    played = Played(reading, model)
    (request,) = model.requests
    assert [given.n for given in parse_passages(request)] == [1, 2, 3]
    assert [message["content"] for message in request[1:]] == ["what is it?", "A plan.", "summarise it"]
    assert model.tools == [None]
    assert (played.text, played.lines) == ("A pump is looked after [1][2][3].", [])
    assert (played.stats.rounds, [doc.path for doc in played.holder.read_docs]) == (1, ["plan.md"])
    assert reading.facts == {"document_id": 7, "title": "Plan", "passages": 3}
    assert reading.prompt.sent == request
    assert not reading.prompt.repack()


def test_of_many_passages_those_cited_and_the_landmarks_are_kept_as_sources() -> None:
    """A list of every passage of a document helps nobody."""
    reading = reading_of(chaptered(60), 40_000)
    assert reading.fits
    assert len(reading.prompt.passages) == 60
    Played(reading, Model(answer=lambda ns: "Two pumps [40][55]."))
    assert len(reading.prompt.passages) <= 14
    assert {40, 55, 1} <= {passage.n for passage in reading.prompt.passages}


def test_a_document_that_does_not_fit_is_read_section_by_section() -> None:
    """A line for each, the notes in one request, and an answer whose markers are passages of the document."""
    whole = chaptered(12)
    reading, model = reading_of(whole, 1_800), Model()
    assert not reading.fits
    played = Played(reading, model)
    total = reading.facts["sections"]
    assert total > 3
    started = [(status, summary) for status, summary in played.lines if status == "start"]
    assert started == [("start", f"section {n} of {total}") for n in range(1, total + 1)]
    ended = [data for data in played.data("tool") if data["status"] == "ok"]
    assert len(ended) == total
    first = ended[0]
    assert (first["name"], first["args"]["path"], first["args"]["offset"]) == ("read", "/library/plan.md", 1)
    assert first["summary"] == f"section 1 of {total} · {first['args']['limit']} lines"
    assert [row["n"] for row in first["sources"]] == [1]
    assert len(model.requests) == played.stats.rounds == total + 1
    assert set(model.tools) == {None}
    notes = parse_notes(model.requests[-1])
    assert [note.first for note in notes] == list(range(1, total + 1))
    checked = check(played.text, reading.prompt.passages)
    assert (checked.valid, checked.dropped) == (total, 0)
    assert all(passage.text == whole.text[passage.char_start : passage.char_end] for passage in reading.prompt.passages)
    assert reading.facts == {"document_id": 7, "title": "Plan", "sections": total, "read": total, "failed": []}
    assert played.stats.finish_reason == "stop"


def test_a_note_may_only_name_passages_of_its_own_section() -> None:
    """Invented numbers go before the notes are joined, so that the answer can't take them up."""
    model = Model(
        note=lambda number, total, ns: f"A pump [{ns[-1]}, 900]. And more [901]." if number == 2 else "A [1]."
    )
    Played(reading_of(chaptered(12), 1_800), model)
    one, two, *_ = parse_notes(model.requests[-1])
    assert one.text == "A [1]."
    assert find_markers(two.text)[0].numbers[0] > 1
    assert "90" not in two.text
    assert two.text.endswith("And more.")


def test_sections_that_hold_nothing_are_left_out_of_the_notes() -> None:
    """They count as read; when none holds anything, the fixed sentence is the answer, without another request."""
    quiet = Model(note=lambda number, total, ns: NOTHING_SENTENCE if number != 2 else f"Here [{ns[0]}].")
    played = Played(reading := reading_of(chaptered(12), 1_800), quiet)
    assert [note.first for note in parse_notes(quiet.requests[-1])] == [2]
    assert reading.facts["read"] == reading.facts["sections"]
    assert played.text
    silent = Model(note=lambda number, total, ns: "nothing here.".capitalize())
    played = Played(reading := reading_of(chaptered(12), 1_800), silent)
    assert played.text == NO_ANSWER_SENTENCE
    assert len(silent.requests) == reading.facts["sections"]


def test_a_section_that_fails_is_asked_for_again_and_then_counted() -> None:
    """The reader sees it fail, the notice says how many, the model is told which; the answer is given all the same."""
    tries: list[int] = []

    def note(number: int, total: int, ns: list[int]) -> object:
        tries.append(number)
        if number == 2 or (number == 3 and tries.count(3) == 1):
            return ["half a note", BROKEN]
        return f"Fine [{ns[0]}]."

    model = Model(note=note)
    played = Played(reading := reading_of(chaptered(12), 1_800), model)
    total = reading.facts["sections"]
    assert tries.count(2) == tries.count(3) == 2
    assert ("error", f"section 2 of {total} could not be read") in played.lines
    assert reading.facts["failed"] == [2]
    (notice,) = played.data("notice")
    assert notice["code"] == "sections_unread"
    assert notice["message"].startswith(f"1 of {total} sections could not be read")
    assert "Section 2 could not be read." in str(model.requests[-1][0]["content"])
    assert played.text


def test_an_empty_note_is_asked_for_once_more_with_the_correction_line() -> None:
    """Then the section is left out and counted; one that came the second time is a recovered reply."""
    seen: list[int] = []

    def note(number: int, total: int, ns: list[int]) -> str:
        seen.append(number)
        return "" if number == 2 or (number == 4 and seen.count(4) == 1) else f"Fine [{ns[0]}]."

    model = Model(note=note)
    played = Played(reading := reading_of(chaptered(12), 1_800), model)
    assert (seen.count(2), seen.count(4)) == (2, 2)
    assert sum(model.corrected) == 2
    assert reading.facts["failed"] == [2]
    assert played.stats.recovered


def test_a_server_that_is_gone_ends_the_turn() -> None:
    """Three sections in a row, or at once where no repetition helps: its error is the turn's."""
    gone = Model(note=lambda number, total, ns: BROKEN)
    played = Played(reading_of(chaptered(20), 1_800), gone)
    assert played.error is BROKEN
    assert len(gone.requests) == 6
    refused = Model(note=lambda number, total, ns: KEY)
    assert Played(reading_of(chaptered(20), 1_800), refused).error is KEY
    assert len(refused.requests) == 1


def test_more_sections_than_are_read_are_said() -> None:
    """To the reader in a notice, to the model as a rule."""
    reading, model = reading_of(chaptered(100, lines=16), 1_300), Model(note=lambda number, total, ns: f"S [{ns[0]}].")
    played = Played(reading, model)
    total = reading.facts["sections"]
    assert total > SECTIONS
    assert reading.facts["read"] == SECTIONS
    assert played.data("notice")[0]["message"] == (
        f"The document has {total} sections. The first {SECTIONS} were read, the rest was not."
    )
    assert f"Only the first {SECTIONS} of {total} sections were read." in str(model.requests[-1][0]["content"])


def test_notes_that_do_not_fit_are_joined_until_they_do() -> None:
    """With a line for each, markers kept and checked; the answer rests on all of them."""
    model = Model(note=lambda number, total, ns: f"Section {number} speaks of a pump [{ns[0]}]. " + "And more. " * 60)
    reading = reading_of(chaptered(40), 1_500)
    played = Played(reading, model)
    joins = [data for data in played.data("tool") if data["name"] == "join" and data["status"] == "ok"]
    assert joins
    assert joins[0]["summary"].startswith("notes on sections 1–")
    notes = parse_notes(model.requests[-1])
    assert notes[-1].last == reading.facts["read"]
    assert len(notes) < reading.facts["read"]
    checked = check(played.text, reading.prompt.passages)
    assert checked.valid == len(notes)
    assert checked.dropped == 0


def test_notes_that_can_not_be_joined_end_the_turn() -> None:
    """There is no answer without them."""
    long = "A pump [{n}]. " + "And more. " * 60
    for reply, expected in ((BROKEN, BROKEN.code), ("", "malformed_reply")):
        model = Model(note=lambda number, total, ns: long.format(n=ns[0]), join=lambda first, at, reply=reply: reply)
        played = Played(reading_of(chaptered(40), 1_500), model)
        assert played.error is not None
        assert played.error.code == expected
        assert played.lines[-1][0] == "error"


def test_a_note_that_does_not_end_is_cut_off() -> None:
    """The stream is closed, and the note ends with a whole sentence."""
    endless = "The pump runs on and on. " * 2_000
    model = Model(note=lambda number, total, ns: endless if number == 1 else f"Fine [{ns[0]}].")
    played = Played(reading_of(chaptered(12), 1_800), model)
    first = parse_notes(model.requests[-1])[0]
    assert first.text.endswith("on.")
    assert len(first.text) < 4_000
    assert model.closed == len(model.requests)
    assert played.text


def test_a_server_that_takes_less_than_it_seemed_gets_the_document_in_sections() -> None:
    """What fits by the estimate and is refused is read in sections of half the size; nothing was said before."""
    reading = reading_of(chaptered(12), 8_000)
    assert reading.fits
    model = Model(answer=lambda ns: TOO_LONG if len(ns) == 12 else f"A pump [{ns[0]}].")
    played = Played(reading, model)
    assert played.text == "A pump [1]."
    assert reading.facts["sections"] > 1
    assert not reading.fits


def test_a_section_that_is_too_long_after_all_is_read_in_halves() -> None:
    """And the answer from notes, too, is asked for once more with fewer of them."""
    model = Model(note=lambda number, total, ns: TOO_LONG if len(ns) > 1 else f"Fine [{ns[0]}].")
    played = Played(reading := reading_of(chaptered(12), 1_800), model)
    assert reading.facts["failed"] == []
    notes = parse_notes(model.requests[-1])
    assert max(len(find_markers(note.text)) for note in notes) > 1
    assert played.text
    first_answers: list[int] = []

    def answer(ns: list[int]) -> object:
        first_answers.append(len(ns))
        return TOO_LONG if len(first_answers) == 1 else f"A pump [{ns[0]}]."

    long = Model(note=lambda number, total, ns: f"A pump [{ns[0]}]. " + "And more. " * 45, answer=answer)
    played = Played(reading_of(chaptered(12), 1_800), long)
    assert played.text == "A pump [1]."
    assert first_answers[0] >= first_answers[1]


def test_a_document_that_is_refused_whatever_its_size_ends_the_turn() -> None:
    """One passage is the least there is."""
    model = Model(note=lambda number, total, ns: TOO_LONG)
    played = Played(reading_of(chaptered(12), 1_800), model)
    assert played.error is not None
    assert (played.error.code, played.error.reason) == ("llm_rejected", "context")


def test_an_answer_that_is_empty_twice_is_malformed() -> None:
    """Its one recovery is the turn's, as for every question."""
    model = Model(answer=lambda ns: "")
    played = Played(reading_of(chaptered(3), 8_000), model)
    assert isinstance(played.error, MalformedReplyError)
    assert model.corrected == [False, True]


def test_what_a_reader_has_to_know_of_a_section_comes_through() -> None:
    """That a try is repeated and that the model is loading; its thoughts and usage do not."""
    said = [
        StreamPiece("notice", data={"code": "model_loading"}),
        StreamPiece("retry", data={"attempt": 1, "max": 2, "delay_ms": 5, "reason": "503"}),
        StreamPiece("thinking", "hm"),
        "Fine.",
    ]
    played = Played(reading := reading_of(chaptered(12), 1_800), Model(note=lambda number, total, ns: said))
    total = reading.facts["sections"]
    assert len(played.data("retry")) == played.stats.retries == total
    assert [data["code"] for data in played.data("notice")] == ["model_loading"] * total
    assert played.data("thinking") == []


@pytest.mark.parametrize("room", [700, 1_500, 5_000])
def test_no_request_is_larger_than_the_room(room: int) -> None:
    """Whatever the window: neither a section nor the notes."""
    model = Model(note=lambda number, total, ns: f"A pump [{ns[0]}]. " + "And more. " * 200)
    Played(reading_of(chaptered(12), room), model)
    for request in model.requests:
        assert sum(len(str(message["content"])) for message in request) / 3.5 <= room + 20
