"""Chats and turns in a real database: what begins together, what is owned, what a kill leaves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import InvalidInputError, NotFoundError
from app.store import chats, queries, turns
from app.store.engine import Database
from app.store.models.chats import Turn
from app.store.models.setup import LOCAL_USER_ID, User

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
BOB = 2


@pytest.fixture
def store(database: Database) -> Database:
    """A database with a second user."""
    bob = User(id=BOB, username="bob", display_name="Bob", role="user", created_at=NOW)
    database.write(lambda session: session.add(bob))
    return database


def new(turn_id: str = "t1", **changes: Any) -> turns.NewTurn:
    start = turns.NewTurn(turn_id, LOCAL_USER_ID, None, f"key-{turn_id}", "How do I back up the NAS?", NOW)
    return replace(start, **changes)


def settle(session: Session, begun: turns.BegunTurn, **changes: Any) -> None:
    settled = turns.SettledTurn(
        turn_id=begun.turn_id,
        message_id=begun.message_id,
        state="done",
        status="complete",
        outcome="ok",
        error_code=None,
        content="Nightly [1].",
        thinking="",
        sources=[{"n": 1, "cited": True}],
        mode="grounded",
        numbers={"chunks": 1},
        prompt=[{"role": "user", "content": "…"}],
        now=NOW,
    )
    turns.settle_turn(session, replace(settled, **changes))


def query(**changes: Any) -> queries.QueryRow:
    row = queries.QueryRow(
        created_at=NOW,
        user_id=LOCAL_USER_ID,
        chat_id=None,
        message_id=None,
        question="Who owns the boat?",
        mode="deflected",
        top_score=0.21,
        chunk_ids=[4],
        read_docs=[],
        tool_calls=0,
        rounds=1,
        model="quotes",
        thinking_chars=0,
        answer_chars=10,
        first_ms=5,
        total_ms=9,
        retries=0,
        scaffold_stripped=0,
        recovered=False,
    )
    return replace(row, **changes)


def test_a_turn_begins_with_chat_question_and_streaming_answer(store: Database) -> None:
    """One transaction makes the chat (titled by the question), both messages and the running turn."""
    begun = store.write(lambda s: turns.begin_turn(s, new()))
    chat = store.read(lambda s: chats.get_chat(s, LOCAL_USER_ID, begun.chat_id))
    question, answer = store.read(lambda s: chats.list_messages(s, LOCAL_USER_ID, begun.chat_id))
    turn = store.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1"))
    assert begun.is_new
    assert chat.title == "How do I back up the NAS?"
    assert (question.role, question.status, question.content) == ("user", "complete", "How do I back up the NAS?")
    assert (answer.role, answer.status, answer.content, answer.parent_id) == ("assistant", "streaming", "", question.id)
    assert (turn.state, turn.chat_id, turn.finished_at) == ("running", chat.id, None)
    assert store.read(turns.list_running) == [turn]


def test_a_used_client_key_gives_the_turn_of_then(store: Database) -> None:
    """A double submit into a new chat makes one chat and one turn."""
    first = store.write(lambda s: turns.begin_turn(s, new("t1", client_key="same")))
    second = store.write(lambda s: turns.begin_turn(s, new("t2", client_key="same")))
    assert second == replace(first, is_new=False)
    assert len(store.read(lambda s: chats.list_chats(s, LOCAL_USER_ID))) == 1


def test_two_users_may_use_the_same_client_key(store: Database) -> None:
    """Keys are unique per user, and nobody attaches to another's turn by guessing one."""
    store.write(lambda s: turns.begin_turn(s, new("t1", client_key="same")))
    other = store.write(lambda s: turns.begin_turn(s, new("t2", client_key="same", user_id=BOB)))
    assert other.is_new
    assert other.turn_id == "t2"


def test_a_chat_with_a_running_turn_is_busy(store: Database) -> None:
    """The second question is refused with the running turn's id, and nothing of it is stored."""
    begun = store.write(lambda s: turns.begin_turn(s, new("t1")))
    with pytest.raises(turns.ChatBusyError) as caught:
        store.write(lambda s: turns.begin_turn(s, new("t2", chat_id=begun.chat_id)))
    assert caught.value.turn_id == "t1"
    assert len(store.read(lambda s: chats.list_messages(s, LOCAL_USER_ID, begun.chat_id))) == 2


def test_the_database_itself_refuses_two_running_turns_of_a_chat(store: Database) -> None:
    """The partial unique index holds even where the check before it is missing."""
    begun = store.write(lambda s: turns.begin_turn(s, new("t1")))
    second = Turn(id="t2", user_id=LOCAL_USER_ID, chat_id=begun.chat_id, state="running", started_at=NOW)
    with pytest.raises(IntegrityError):
        store.write(lambda s: (s.add(second), s.flush()))


def test_another_users_chat_looks_missing_everywhere(store: Database) -> None:
    """Read, rename, delete, ask, history: not found, and the owner's rows stay as they were."""
    begun = store.write(lambda s: turns.begin_turn(s, new()))
    refused = [
        lambda s: chats.get_chat(s, BOB, begun.chat_id),
        lambda s: chats.list_messages(s, BOB, begun.chat_id),
        lambda s: chats.get_message(s, BOB, begun.message_id),
        lambda s: chats.rename_chat(s, BOB, begun.chat_id, "Mine"),
        lambda s: chats.delete_chat(s, BOB, begun.chat_id),
        lambda s: turns.get_turn(s, BOB, "t1"),
        lambda s: turns.begin_turn(s, new("t2", user_id=BOB, chat_id=begun.chat_id)),
    ]
    for attempt in refused:
        with pytest.raises(NotFoundError):
            store.write(attempt)
    assert store.read(lambda s: chats.list_chats(s, BOB)) == []
    assert store.read(lambda s: chats.earlier_messages(s, BOB, begun.chat_id, before_id=99)) == []
    assert store.read(lambda s: chats.earlier_questions(s, BOB, begun.chat_id, before_id=99)) == []
    assert store.read(lambda s: chats.answer_of(s, BOB, "t1")) is None
    assert store.read(lambda s: turns.running_turn(s, BOB, begun.chat_id)) is None
    assert store.read(lambda s: chats.get_chat(s, LOCAL_USER_ID, begun.chat_id)).title == "How do I back up the NAS?"


def test_a_settled_turn_frees_its_chat_and_keeps_everything(store: Database) -> None:
    """Answer, sources, numbers and prompt are there afterwards, and the next question may come."""
    begun = store.write(lambda s: turns.begin_turn(s, new("t1")))
    store.write(lambda s: settle(s, begun))
    answer = store.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id))
    turn = store.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1"))
    later = NOW + timedelta(minutes=1)
    again = store.write(lambda s: turns.begin_turn(s, new("t2", chat_id=begun.chat_id, now=later)))
    assert (answer.content, answer.status, answer.sources) == ("Nightly [1].", "complete", ({"n": 1, "cited": True},))
    assert (turn.state, turn.outcome, turn.finished_at, turn.numbers) == ("done", "ok", NOW, {"chunks": 1})
    assert turn.prompt == ({"role": "user", "content": "…"},)
    assert store.read(lambda s: chats.get_message(s, LOCAL_USER_ID, again.user_message_id)).parent_id == answer.id
    assert store.read(lambda s: chats.get_chat(s, LOCAL_USER_ID, begun.chat_id)).updated_at == later


def test_a_draft_never_overwrites_a_settled_answer(store: Database) -> None:
    """A flush that was queued before the end and runs after it changes nothing."""
    begun = store.write(lambda s: turns.begin_turn(s, new()))
    store.write(lambda s: turns.save_drafts(s, [(begun.message_id, "Night", "hm")]))
    draft = store.read(lambda s: chats.answer_of(s, LOCAL_USER_ID, "t1"))
    store.write(lambda s: settle(s, begun))
    store.write(lambda s: turns.save_drafts(s, [(begun.message_id, "Night", "hm")]))
    late = turns.Prompted("t1", "deflected", {}, [], [])
    store.write(lambda s: turns.mark_prompted(s, begun.message_id, late))
    final = store.read(lambda s: chats.answer_of(s, LOCAL_USER_ID, "t1"))
    assert draft is not None
    assert final is not None
    assert (draft.content, draft.thinking) == ("Night", "hm")
    assert (final.content, final.sources) == ("Nightly [1].", ({"n": 1, "cited": True},))
    assert store.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1")).mode == "grounded"


def test_an_interrupted_turn_keeps_its_text_and_sources(store: Database) -> None:
    """What was written before a kill is what the page shows after it."""
    begun = store.write(lambda s: turns.begin_turn(s, new()))
    sources = [{"n": 1, "path": "a.md"}]
    marked = turns.Prompted("t1", "grounded", {"chunks": 1}, [], sources)
    store.write(lambda s: turns.mark_prompted(s, begun.message_id, marked))
    store.write(lambda s: turns.save_drafts(s, [(begun.message_id, "Half an ans", "")]))
    store.write(lambda s: turns.interrupt_turn(s, "t1", NOW))
    answer = store.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id))
    turn = store.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1"))
    assert (answer.content, answer.status, answer.sources) == ("Half an ans", "interrupted", tuple(sources))
    assert (turn.state, turn.mode, turn.numbers) == ("interrupted", "grounded", {"chunks": 1})


def test_history_is_the_last_messages_with_text_oldest_first(store: Database) -> None:
    """An answer that never came is no memory; questions alone can be asked for."""
    begun = store.write(lambda s: turns.begin_turn(s, new("t1", question="One?")))
    store.write(lambda s: settle(s, begun, content=""))
    begun = store.write(lambda s: turns.begin_turn(s, new("t2", question="Two?", chat_id=begun.chat_id)))
    store.write(lambda s: settle(s, begun, content="Two."))
    begun = store.write(lambda s: turns.begin_turn(s, new("t3", question="Three?", chat_id=begun.chat_id)))
    before = begun.user_message_id
    user = LOCAL_USER_ID
    earlier = store.read(lambda s: chats.earlier_messages(s, user, begun.chat_id, before_id=before))
    asked = store.read(lambda s: chats.earlier_questions(s, user, begun.chat_id, before_id=before, limit=1))
    assert [message.content for message in earlier] == ["One?", "Two?", "Two."]
    assert asked == ["Two?"]


def test_chats_are_listed_last_asked_first(store: Database) -> None:
    """The list follows the questions, not the names; paging goes on where it stopped."""
    for day, title in enumerate(["old", "new", "newest"]):
        moment = NOW + timedelta(days=day)
        store.write(lambda s, t=title, m=moment: chats.create_chat(s, LOCAL_USER_ID, t, m))
    titles = [chat.title for chat in store.read(lambda s: chats.list_chats(s, LOCAL_USER_ID))]
    second = [chat.title for chat in store.read(lambda s: chats.list_chats(s, LOCAL_USER_ID, limit=1, offset=1))]
    assert titles == ["newest", "new", "old"]
    assert second == ["new"]


def test_a_title_is_one_line_and_not_empty(store: Database) -> None:
    """Renaming folds white space and refuses what could not be shown in a list."""
    chat = store.write(lambda s: chats.create_chat(s, LOCAL_USER_ID, "old", NOW))
    renamed = store.write(lambda s: chats.rename_chat(s, LOCAL_USER_ID, chat.id, "  two\nlines  "))
    assert renamed.title == "two lines"
    for title, code in [(" \n", "title_empty"), ("x" * 201, "title_too_long")]:
        with pytest.raises(InvalidInputError) as caught:
            store.write(lambda s, t=title: chats.rename_chat(s, LOCAL_USER_ID, chat.id, t))
        assert caught.value.code == code


def test_deleting_a_chat_takes_messages_and_turns_and_keeps_the_log_of_questions(store: Database) -> None:
    """The gaps stay known although the chat is gone."""
    begun = store.write(lambda s: turns.begin_turn(s, new()))
    store.write(lambda s: queries.add_query(s, query(chat_id=begun.chat_id, message_id=begun.message_id)))
    store.write(lambda s: chats.delete_chat(s, LOCAL_USER_ID, begun.chat_id))
    with pytest.raises(NotFoundError):
        store.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1"))
    with pytest.raises(NotFoundError):
        store.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id))
    (gap,) = store.read(lambda s: queries.list_gaps(s, LOCAL_USER_ID))
    assert (gap.question, gap.chat_id, gap.message_id) == ("Who owns the boat?", None, None)


def test_gaps_are_the_users_deflected_questions_newest_first(store: Database) -> None:
    """Answered questions, questions without documents and other users' questions are not gaps."""
    store.write(lambda s: queries.add_query(s, query(question="first")))
    store.write(lambda s: queries.add_query(s, query(question="second")))
    store.write(lambda s: queries.add_query(s, query(question="answered", mode="grounded")))
    store.write(lambda s: queries.add_query(s, query(question="smalltalk", mode=queries.WITHOUT_DOCUMENTS)))
    store.write(lambda s: queries.add_query(s, query(question="bob's", user_id=BOB)))
    gaps = store.read(lambda s: queries.list_gaps(s, LOCAL_USER_ID))
    assert [gap.question for gap in gaps] == ["second", "first"]


def test_a_question_can_move_its_chat_to_other_collections(store: Database) -> None:
    """Given collections stay with the chat; none given leaves them; an empty list means all again."""
    begun = store.write(lambda s: turns.begin_turn(s, new("t1", collections=(3, 4))))
    chat_id = begun.chat_id

    def ask(session: Session, turn_id: str, collections: tuple[int, ...] | None) -> tuple[int, ...] | None:
        turns.interrupt_turn(session, turns.list_running(session)[0].id, NOW)
        turns.begin_turn(session, new(turn_id, chat_id=chat_id, collections=collections))
        return chats.get_chat(session, LOCAL_USER_ID, chat_id).collection_filter

    assert store.write(lambda s: ask(s, "t2", None)) == (3, 4)
    assert store.write(lambda s: ask(s, "t3", ())) is None


@given(st.text(max_size=300))
def test_a_chat_title_is_one_short_line(question: str) -> None:
    """Whatever is asked, the title is at most 80 characters and an ellipsis, without line breaks."""
    title = chats.title_of(question)
    assert len(title) <= chats.TITLE_CHARS + 1
    assert title == " ".join(title.split())


def test_a_long_title_is_cut_on_a_word() -> None:
    """Words stay whole; a single endless word is cut hard."""
    assert chats.title_of("word " * 40) == ("word " * 16).strip() + "…"
    assert chats.title_of("x" * 200) == "x" * 80 + "…"
