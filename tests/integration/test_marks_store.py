"""Marks and saved questions in a real database: one per answer, owned, and what outlives what."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.errors import ConflictError, InvalidInputError, NotFoundError
from app.store import eval_questions, marks
from app.store.engine import Database
from app.store.eval_questions import NewQuestion, PastQuestion, Place, RightPassage
from app.store.models.setup import LOCAL_USER_ID
from tests.integration import library_rows as rows

TEXT = "# Backups\n\nThe nightly job starts at 02:00.\n\nIt keeps seven snapshots."
QUOTE = "The nightly job starts at 02:00."
RIGHT = RightPassage("library", "backup.md", TEXT.index(QUOTE), TEXT.index(QUOTE) + len(QUOTE), QUOTE)
QUESTION = NewQuestion("When does it start?", "followup", (PastQuestion("A nightly job?", "Yes."),), (RIGHT,))
ME = LOCAL_USER_ID


@pytest.fixture
def document(database: Database) -> int:
    """A document that was read, and an answered turn `t1` about it."""
    document = rows.add_document(database, "backup.md", TEXT)
    passages = rows.passages_of(database, document)
    rows.add_answer(database, "t1", "When does it start?", "At 02:00 [1].", [(document, passages[1])])
    return document


def save(database: Database, new: NewQuestion = QUESTION, user_id: int = ME) -> int:
    return database.write(lambda session: eval_questions.put_question(session, user_id, new, rows.NOW))


def saved(database: Database, user_id: int = ME) -> list[eval_questions.EvalQuestion]:
    return database.read(lambda session: eval_questions.questions_of(session, user_id))


@pytest.mark.usefixtures("document")
def test_a_reader_has_one_mark_on_an_answer(database: Database) -> None:
    """The last word counts; the reason stays until there is another verdict; taking it back leaves nothing."""
    say = lambda *said: database.write(lambda s: marks.set_mark(s, ME, "t1", *said, rows.NOW))  # noqa: E731
    say("not_helpful", "  too\n long ")
    assert say("not_helpful", None).reason == "too long"
    assert say("helpful", None).reason is None
    assert list(database.read(lambda s: marks.marks_of(s, ME, ["t1", "t2"]))) == ["t1"]
    cleared = database.write(lambda s: marks.clear_mark(s, ME, "t1"))
    assert cleared is not None
    assert cleared.verdict == "helpful"
    assert database.write(lambda s: marks.clear_mark(s, ME, "t1")) is None


@pytest.mark.usefixtures("document")
def test_a_reason_has_a_limit_and_a_foreign_turn_is_none(database: Database) -> None:
    """A turn of somebody else's looks like a missing one, to mark and to unmark."""
    other = rows.add_user(database)
    with pytest.raises(InvalidInputError, match="reason_too_long"):
        database.write(lambda s: marks.set_mark(s, ME, "t1", "helpful", "x" * 501, rows.NOW))
    with pytest.raises(NotFoundError, match="turn_not_found"):
        database.write(lambda s: marks.set_mark(s, other, "t1", "helpful", None, rows.NOW))
    with pytest.raises(NotFoundError, match="turn_not_found"):
        database.write(lambda s: marks.clear_mark(s, other, "t1"))


def test_answers_of_no_help_are_listed_and_go_with_their_chat(database: Database, document: int) -> None:
    """A mark is the chat's; a saved question stays, without its turn."""
    passage = rows.passages_of(database, document)[1]
    begun = rows.add_answer(database, "t2", "How many?", "Seven [1].", [(document, passage)])
    database.write(lambda s: marks.set_mark(s, ME, "t2", "not_helpful", "wrong", rows.NOW))
    save(database, replace(QUESTION, turn_id="t2"))
    (unhelpful,) = database.read(lambda s: marks.list_unhelpful(s, ME))
    assert (unhelpful.question, unhelpful.reason, unhelpful.chat_id) == ("How many?", "wrong", begun.chat_id)
    rows.delete_chat(database, begun.chat_id)
    assert database.read(lambda s: marks.list_unhelpful(s, ME)) == []
    assert [(question.question, question.turn_id) for question in saved(database)] == [("When does it start?", None)]


def test_a_question_is_kept_once_and_knows_where_its_passage_is(database: Database, document: int) -> None:
    """Case and blanks make no other question; what it leans on does."""
    first = save(database)
    assert save(database, replace(QUESTION, question="  when DOES it   start? ")) == first
    assert save(database, replace(QUESTION, history=())) != first
    kept = saved(database)[0]
    assert (kept.passages, kept.places, kept.is_gone) == ((RIGHT,), (Place(document, True),), False)
    same = database.read(lambda s: eval_questions.find_same(s, ME, "When does it start?", QUESTION.history))
    assert same == kept


def test_a_passage_outlives_another_reading_and_is_missed_once_its_words_are_gone(
    database: Database, document: int
) -> None:
    """The document's new passages don't matter, its words do."""
    save(database)
    rows.read_again(database, document, f"# Other title\n\nMore. {QUOTE}")
    assert saved(database)[0].places == (Place(document, True),)
    rows.read_again(database, document, "# Other title\n\nIt starts at three.")
    assert saved(database)[0].places == (Place(document, False),)
    save(database, replace(QUESTION, passages=(RightPassage(None, "backup.md", quote="at three"),)))
    assert saved(database)[0].places == (Place(document, True),)


@pytest.mark.usefixtures("document")
@pytest.mark.parametrize(("needs_all", "is_gone"), [(False, False), (True, True)])
def test_a_question_is_gone_with_what_it_needs(database: Database, needs_all: bool, is_gone: bool) -> None:
    """Any of several passages will do, unless all are needed; an unanswerable one is never gone."""
    gone = RightPassage("library", "gone.md", 0, 4, "Gone")
    save(database, replace(QUESTION, passages=(RIGHT, gone), needs_all=needs_all))
    save(database, NewQuestion("Who was Ada?", "unanswerable"))
    several, unanswerable = saved(database)
    assert several.places[1] == Place(None, False)
    assert (several.is_gone, unanswerable.is_gone, unanswerable.is_answerable) == (is_gone, False, False)


def test_taking_a_question_out_can_be_undone_for_a_day(database: Database) -> None:
    """The next removal after a day clears it away; saving it again brings it back as well."""
    first, second = save(database), save(database, NewQuestion("Other?", "question"))
    remove = lambda one, now: database.write(lambda s: eval_questions.remove_question(s, ME, one, now))  # noqa: E731
    restore = lambda one: database.write(lambda s: eval_questions.restore_question(s, ME, one))  # noqa: E731
    remove(first, rows.NOW)
    assert [question.id for question in saved(database)] == [second]
    assert restore(first).id == first
    remove(first, rows.NOW)
    assert save(database) == first
    remove(first, rows.NOW)
    remove(second, rows.NOW + timedelta(days=2))
    assert restore(second).question == "Other?"
    with pytest.raises(NotFoundError, match="eval_question_not_found"):
        restore(first)


def test_other_words_are_a_question_of_their_own(database: Database) -> None:
    """Not empty, not twice; words of one that was taken out are free."""
    first, second = save(database), save(database, replace(QUESTION, question="Other?"))
    edit = lambda one, text: database.write(lambda s: eval_questions.edit_question(s, ME, one, text))  # noqa: E731
    assert edit(first, " At what time? ").question == "At what time?"
    with pytest.raises(InvalidInputError, match="eval_question_empty"):
        edit(first, " ")
    with pytest.raises(ConflictError, match="eval_question_known"):
        edit(first, "other?")
    database.write(lambda s: eval_questions.remove_question(s, ME, second, rows.NOW))
    assert edit(first, "Other?").id == first


def test_a_users_questions_are_theirs(database: Database) -> None:
    """To list, to change, to take out, to find by turn."""
    question, other = save(database, replace(QUESTION, turn_id=None)), rows.add_user(database)
    assert saved(database, other) == []
    for change in (
        lambda s: eval_questions.edit_question(s, other, question, "Mine?"),
        lambda s: eval_questions.remove_question(s, other, question, rows.NOW),
        lambda s: eval_questions.restore_question(s, other, question),
    ):
        with pytest.raises(NotFoundError):
            database.write(change)
    assert saved(database)[0].question == QUESTION.question


@pytest.mark.usefixtures("document")
def test_a_question_is_found_by_its_turn(database: Database) -> None:
    """For the chat, which shows what was saved."""
    save(database, replace(QUESTION, turn_id="t1"))
    assert list(database.read(lambda s: eval_questions.of_turns(s, ME, ["t1", "t9"]))) == ["t1"]
    assert database.read(lambda s: eval_questions.of_turns(s, rows.LOCAL_USER_ID + 7, ["t1"])) == {}


def test_a_question_needs_words_and_there_is_a_most(database: Database) -> None:
    """One more than the limit is refused, a change of a kept one is not."""
    with pytest.raises(InvalidInputError, match="eval_question_empty"):
        save(database, NewQuestion("  ", "question"))

    def fill(session: object) -> None:
        for number in range(eval_questions.MOST_QUESTIONS):
            eval_questions.put_question(session, ME, NewQuestion(f"Question {number}?", "question"), rows.NOW)  # type: ignore[arg-type]

    database.write(fill)
    with pytest.raises(InvalidInputError, match="eval_too_many"):
        save(database)
    assert save(database, NewQuestion("Question 1?", "lookup"))
