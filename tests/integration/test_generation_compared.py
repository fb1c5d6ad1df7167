"""The comparison before a switch: whose questions, which passages, what happens when an embedder fails."""

import json
from datetime import UTC, datetime

from sqlalchemy import select

from app.search.embeddings import FloatVector
from app.search.errors import EmbedError
from app.settings import Settings
from app.store import asked_questions
from app.store.engine import Session
from app.store.models.chats import Chat, Message, QueryLog
from app.store.models.evaluation import EvalQuestion
from app.store.models.library import Chunk, Collection, Document
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER
from tests.integration.generation_kit import NEW, Library
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ask(session: Session, question: str, cited: list[int], *, mode: str = "grounded") -> None:
    """An answered question in the log, whose answer cited these passages."""
    chat = Chat(user_id=USER, title="t", pinned=False, created_at=NOW, updated_at=NOW)
    session.add(chat)
    session.flush()
    sources = [{"chunk_id": chunk, "cited": True} for chunk in cited] + [{"chunk_id": 10**6, "cited": False}]
    message = Message(
        chat_id=chat.id,
        turn_id=f"t{chat.id}",
        role="assistant",
        content="a",
        thinking="",
        status="complete",
        sources=sources,
        created_at=NOW,
    )
    session.add(message)
    session.flush()
    counts = ("tool_calls", "rounds", "thinking_chars", "answer_chars", "first_ms", "total_ms", "retries")
    zero = dict.fromkeys((*counts, "scaffold_stripped"), 0)
    session.add(
        QueryLog(
            created_at=NOW,
            user_id=USER,
            chat_id=chat.id,
            message_id=message.id,
            question=question,
            mode=mode,
            top_score=0.5,
            chunk_ids=cited,
            read_docs=[],
            model="m",
            recovered=False,
            **zero,
        )
    )


def chunk_of(library: Library, path: str) -> int:
    query = select(Chunk.id).join(Document).where(Document.path == path)
    found = library.life.database.read(lambda session: session.scalar(query))
    assert found is not None
    return found


def test_the_newest_distinct_answered_questions_are_taken_with_what_they_cited(settings: Settings) -> None:
    """Once each whatever the case; a passage that is gone is left out, a deflected question, too."""
    with Library(settings).filled() as library:
        garden = chunk_of(library, "garden.md")

        def log(session: Session) -> None:
            ask(session, "Flowers?", [garden, 999])
            ask(session, "flowers? ", [garden])
            ask(session, "gone", [999])
            ask(session, "unanswered", [], mode="deflected")

        library.life.database.write(log)
        found = library.life.database.read(lambda session: asked_questions.from_log(session, 50))
        assert [one.question for one in found] == ["gone", "flowers? "]
        assert [len(one.cited) for one in found] == [0, 1]
        assert len(library.life.database.read(lambda session: asked_questions.from_log(session, 1))) == 1


def test_both_are_asked_and_the_numbers_are_kept_with_the_build(settings: Settings) -> None:
    """The new embedder knows no synonym, so it loses the question that needs one; the switch is there all the same."""
    with Library(settings, WordEmbedder("new", 32)).filled() as library:
        garden, raid = chunk_of(library, "garden.md"), chunk_of(library, "raid.md")
        library.life.database.write(lambda session: ask(session, "flowers", [garden]))
        library.life.database.write(lambda session: ask(session, "raid", [raid]))
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        compared = library.row("new").compared
        assert compared is not None
        assert (compared["asked"], compared["cited"], compared["problem"]) == (2, 2, None)
        assert compared["old"]["12"] == 2
        assert compared["new"]["12"] >= 1
        assert compared["same_first"] >= 1
        assert json.dumps(compared)
        library.decide.switch(USER, library.row("new").id)


class Queries(WordEmbedder):
    """One whose questions fail while passages do not."""

    fails = True

    def embed_query(self, text: str) -> FloatVector:
        if self.fails:
            raise EmbedError
        return super().embed_query(text)


def test_an_embedder_that_fails_during_the_comparison_is_told_and_it_is_made_again(settings: Settings) -> None:
    """Found by words alone, nothing would be said of the vectors; so no numbers."""
    new = Queries("new", 32)
    with Library(settings, new).filled() as library:
        garden = chunk_of(library, "garden.md")
        library.life.database.write(lambda session: ask(session, "flowers", [garden]))
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        compared = library.row("new").compared
        assert compared is not None
        assert (compared["problem"], compared["asked"]) == ("embed_unavailable", 0)
        new.fails = False
        library.decide.compare_again()
        until(lambda: (library.row("new").compared or {}).get("asked") == 1, "compared again")


def test_saved_questions_come_first_with_what_overlaps_the_marked_stretch(settings: Settings) -> None:
    """Those that lean on an earlier question, were taken out, or have no right passage are left out."""
    with Library(settings).filled() as library:
        garden = chunk_of(library, "garden.md")
        right = {"collection": "library", "path": "garden.md", "char_start": 20, "char_end": 40, "quote": "q"}

        def save(session: Session) -> None:
            slug = session.scalar(select(Collection.slug).join(Document).where(Document.path == "garden.md"))
            for number, (history, passages, removed) in enumerate(
                [
                    ([], [{**right, "collection": slug}], None),
                    ([{"question": "q", "answer": "a"}], [right], None),
                    ([], [right], NOW),
                    ([], [], None),
                ]
            ):
                session.add(
                    EvalQuestion(
                        user_id=USER,
                        key=str(number),
                        question=f"saved {number}",
                        kind="fact",
                        history=history,
                        passages=passages,
                        needs_all=False,
                        by_mark=False,
                        removed_at=removed,
                        created_at=NOW,
                    )
                )

        library.life.database.write(save)
        (found,) = library.life.database.read(lambda session: asked_questions.from_saved(session, 50))
        shas = library.life.database.read(lambda session: asked_questions.shas_of(session, [garden]))
        assert (found.question, found.cited) == ("saved 0", frozenset(shas.values()))
        library.life.database.write(lambda session: ask(session, "flowers", [garden]))
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        assert (library.row("new").compared or {})["asked"] == 2


def test_what_is_compared_leaves_one_generation_in_memory(settings: Settings) -> None:
    """The other one's matrix goes with the comparison."""
    with Library(settings).filled() as library:
        garden = chunk_of(library, "garden.md")
        library.life.database.write(lambda session: ask(session, "flowers", [garden]))
        assert library.finds_by_meaning()
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        assert library.life.index.generations == [library.row("old").id]
