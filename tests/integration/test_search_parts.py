"""Parts of words: writing without spaces, identifiers, and the trigram index that finds them."""

import pytest
from sqlalchemy import text

from app.search import fulltext, grams
from app.search.hits import SearchFilters
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database, Session, StoreError
from app.store.models import Chunk, Document
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import NOW, add_document, add_user

GUIDE = "安装之后，运行nginx并设置备份"
CALL = "const user = await getUserById(id)"


@pytest.fixture
def library(database: Database) -> Database:
    """Eleven files, one of somebody else's, and ten about nothing in particular."""

    def work(session: Session) -> None:
        add_user(session, 2, 20)
        add_document(session, "guide.md", GUIDE, "天气很好。")
        add_document(session, "thai.md", "การสำรองข้อมูลทุกคืน", "อากาศดี")
        add_document(session, "code.ts", CALL, "if (error.code === 'EADDRINUSE') retry()")
        add_document(session, "flags.md", "Pass --log.level=debug to see more.", "The log has a level of detail.")
        add_document(session, "theirs.md", "备份和--log.level和getUserById", collection_id=20)
        for number in range(10):
            add_document(session, f"other{number}.md", f"Something about a log and its level, part {number}.")

    database.write(work)
    return database


def found(database: Database, question: str, k: int = 1, filters: SearchFilters | None = None) -> list[str]:
    searcher = Searcher(database, WordEmbedder(), VectorIndex())
    hits = searcher.search(question, user_id=1, k=k, filters=filters or SearchFilters())
    return [f"{hit.path}: {hit.text}" for hit in hits]


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("备份", "guide.md"),
        ("怎么设置备份？", "guide.md"),
        ("好。", "guide.md"),
        ("天", "guide.md"),
        ("NGINX安装", "guide.md"),
        ("สำรอง", "thai.md"),
        ("--log.level", "flags.md"),
        ("what does --LOG.level do", "flags.md"),
        ("UserBy", "code.ts"),
        ("where is ADDRINUSE handled", "code.ts"),
        ("error.code", "code.ts"),
    ],
)
def test_parts_of_words_are_found(library: Database, question: str, path: str) -> None:
    """Two characters too, also at the end of a passage."""
    assert found(library, question)[0].startswith(path + ":")


@pytest.mark.parametrize("question", ["备份", "getUserById", "--log.level=info", "备"])
def test_other_peoples_passages_stay_out(library: Database, question: str) -> None:
    """By every way of looking up."""
    assert not [one for one in found(library, question, k=50) if one.startswith("theirs")]
    assert found(library, question, filters=SearchFilters(collections=(20,))) == []


def test_what_stands_in_the_passage_makes_the_score(library: Database) -> None:
    """Also for parts of words: a question that is all there scores 1."""
    searcher = Searcher(library, WordEmbedder(), VectorIndex())
    (whole, *_) = searcher.search("设置备份", user_id=1, k=1)
    (half, *_) = searcher.search("设置备份的方法是什么", user_id=1, k=1)
    (name, *_) = searcher.search("UserById", user_id=1, k=1)

    assert whole.score == 1.0
    assert 0.1 < half.score < 0.7
    assert (name.score, name.text) == (1.0, CALL)


def test_an_identifier_that_is_a_word_is_left_to_the_word_index(library: Database) -> None:
    """A word that the index knows is not looked for inside others."""
    database = library
    database.write(lambda session: add_document(session, "word.md", "EADDRINUSEX is another name."))
    hits = found(database, "EADDRINUSE", k=50)
    assert [one for one in hits if "EADDRINUSEX" in one] == []


class TestIndex:
    """The rows of the index."""

    def test_it_follows_every_change_of_the_passages(self, library: Database) -> None:
        """New text in, old text out, in the transaction of the change; a new name changes nothing in it."""

        def change(session: Session) -> None:
            document = session.query(Document).filter_by(path="guide.md").one()
            fulltext.unindex(session, document.id)
            session.query(Chunk).filter_by(document_id=document.id).update({"text": "改了的内容"})
            fulltext.index_document(session, document.id)
            fulltext.unindex(session, document.id, keeps_text=True)
            document.path = "renamed.md"
            session.flush()
            fulltext.index_document(session, document.id)

        library.write(change)
        library.write(fulltext.check)
        assert found(library, "内容")[0].startswith("renamed.md")
        assert library.read(lambda session: grams.weigh(session, ["备份"], 10))[0].chunks == 1

    def test_a_library_without_it_is_filled_step_by_step(self, library: Database) -> None:
        """What is not in yet is not found by parts, and found again once it is; a second fill changes nothing."""
        library.write(lambda s: s.execute(text("INSERT INTO chunks_grams(chunks_grams) VALUES ('delete-all')")))
        total = library.read(lambda session: session.query(Chunk).count())
        assert not found(library, "备份")
        assert library.read(grams.left) == total
        library.write(fulltext.check)

        assert library.write(lambda session: grams.backfill(session, 3)) == total - 3
        new = library.write(lambda session: add_document(session, "new.md", "新的备份"))
        assert library.write(lambda session: grams.backfill(session, 1000)) == 0
        assert library.write(lambda session: grams.backfill(session, 1000)) == 0
        library.write(fulltext.check)
        assert {one.split(":")[0] for one in found(library, "备份", k=9)} == {"guide.md", "new.md"}
        library.write(lambda session: fulltext.unindex(session, new))

    def test_damage_is_noticed_and_a_rebuild_mends_it(self, library: Database) -> None:
        """A row whose text changed behind the index's back."""
        library.write(lambda session: session.query(Chunk).filter_by(text=GUIDE).update({"text": "备份没有了"}))
        with pytest.raises(StoreError):
            library.write(grams.check)

        library.write(fulltext.rebuild)
        library.write(fulltext.check)
        assert found(library, "没有")[0].startswith("guide.md")

    def test_a_removed_passage_leaves_no_trace(self, library: Database) -> None:
        """Nothing of it in the vocabulary."""

        def remove(session: Session) -> None:
            document = session.query(Document).filter_by(path="thai.md").one()
            fulltext.unindex(session, document.id)
            session.query(Chunk).filter_by(document_id=document.id).delete()
            document.deleted_at = NOW

        library.write(remove)
        assert library.read(lambda session: grams.weigh(session, ["สำร"], 10))[0].chunks == 0
        library.write(fulltext.check)
