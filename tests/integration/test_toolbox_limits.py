"""What no tool call can do: see another person's documents, leave the turn's filters, fail, or say too much."""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.rag.context import estimate_tokens
from app.rag.pieces import ToolCallPiece
from app.rag.tool_calls import ToolResult
from app.rag.toolbox import DEFINITIONS
from app.search.hits import SearchFilters
from app.settings import Settings
from app.store import collections, intake
from app.store.engine import Database
from app.store.migrate import migrate
from app.store.models import CollectionMember
from app.store.scope import Scope
from app.store.tool_reads import chunk_at, last_lines, list_collections, list_documents, texts_of
from tests.integration.library_rows import NOW, add_document, add_user
from tests.integration.toolbox_kit import ALICE, Caller, index_all, make_toolbox
from tests.unit.rag.tools.test_arguments import JSON, KNOWN_KEYS
from tests.unit.rag.tools.test_paths import HOSTILE

CANARY = "canary-7f3a"
NO_ROOM_TOKENS = 30


def everything(result: ToolResult) -> str:
    return f"{result.text}\n{result.summary}\n{result.passages}\n{result.read}"


@pytest.fixture
def bob(database: Database) -> int:
    """Somebody else, with documents whose names and texts hold the canary."""
    bob = add_user(database, "bob")
    add_document(database, f"{CANARY}.md", f"The secret is {CANARY}.", user_id=bob, title=f"About {CANARY}")
    add_document(database, f"shared/{CANARY}/x.md", f"Another {CANARY} needle.", user_id=bob)
    add_document(database, "shared/mine.md", "Alice writes: needle.")
    index_all(database)
    return bob


CALLS = [
    ("read", {"path": f"{CANARY}.md"}),
    ("read", {"path": f"/library-2/{CANARY}.md"}),
    ("read", {"path": f"/library/../library-2/{CANARY}.md"}),
    ("read", {"path": f"/Library/{CANARY}.md"}),
    ("read", {"path": f"About {CANARY}"}),
    ("read", {"path": "1"}),
    ("read", {"path": "documents/1"}),
    ("read", {"path": "2", "user_id": 2}),
    ("ls", {}),
    ("ls", {"path": "/"}),
    ("ls", {"path": "/library-2"}),
    ("ls", {"path": "/library-2/shared"}),
    ("ls", {"path": "shared"}),
    ("find", {"pattern": "*"}),
    ("find", {"pattern": "**"}),
    ("find", {"pattern": "%"}),
    ("find", {"pattern": "7f3a", "path": "/library-2"}),
    ("find", {"pattern": "/library-2/**"}),
    ("grep", {"pattern": "."}),
    ("grep", {"pattern": "secret|Another", "path": "/"}),
    ("grep", {"pattern": ".*", "path": "/library-2", "glob": "**"}),
    ("grep", {"pattern": "needle", "glob": "/library-2/**"}),
    ("search", {"query": "the secret needle", "k": 100}),
    ("search", {"query": "secret OR another*", "collections": [2], "documents": [1]}),
    ("search", {"query": '" OR 1=1 --'}),
]


def test_no_call_shows_anything_of_another_persons_documents(
    database: Database, bob: int, caplog: pytest.LogCaptureFixture
) -> None:
    """By name, address, id, wildcard, filter or text; not in results, not in logs. What was asked may be said back."""
    caplog.set_level(logging.DEBUG)
    for name, arguments in CALLS:
        said = everything(Caller(database, make_toolbox(database))(name, **arguments))
        for value in arguments.values():
            said = said.replace(f"'{value}'", "")
        assert CANARY not in said, (name, arguments)
        assert "library-2" not in said, (name, arguments)
    assert CANARY not in caplog.text


def test_the_owner_sees_them(database: Database, bob: int) -> None:
    """The calls above would find them for bob: by his names, and by the name everyone's uploads have."""
    call = Caller(database, make_toolbox(database, user_id=bob), bob)
    assert CANARY in call("read", path=f"/library-2/{CANARY}.md").text
    assert call("read", path=f"/Library/shared/{CANARY}/x.md").ok
    assert call("grep", pattern="needle").summary == "1 match in 1 file"
    assert "this is passage 1" in call("search", query="secret").text


def test_a_shared_collection_is_seen_by_its_members(database: Database, bob: int) -> None:
    """Through the same condition that pages use, and only as long as it is shared."""
    theirs = database.read(lambda session: collections.list_collections(session, bob)[0].id)
    call = Caller(database, make_toolbox(database))
    database.write(lambda session: session.add(CollectionMember(collection_id=theirs, user_id=ALICE, can_write=False)))
    assert call("read", path=f"{CANARY}.md").ok
    assert "/library-2/  2 documents" in call("ls").text
    database.write(lambda session: session.delete(session.get_one(CollectionMember, (theirs, ALICE))))
    assert not call("read", path=f"/library-2/{CANARY}.md", offset=1).ok


class TestFilters:
    def test_a_turn_about_some_documents_sees_no_other(self, database: Database) -> None:
        """Names, texts and counts."""
        one = add_document(database, "one.md", "needle one")
        add_document(database, "two.md", "needle two")
        index_all(database)
        call = Caller(database, make_toolbox(database, filters=SearchFilters(documents=(one,))))
        assert call("ls").text.splitlines()[1:] == ["/library/one.md  1 line"]
        assert call("find", pattern="*").summary == "1 file"
        assert call("grep", pattern="needle").summary == "1 match in 1 file"
        assert {passage.document_id for passage in call.toolbox.passages} == {one}
        assert call("search", query="needle").summary == "1 passage"
        assert call("read", path="/library/two.md").summary == "no such file"

    def test_an_empty_filter_shows_nothing(self, database: Database) -> None:
        """As in a search."""
        add_document(database, "one.md", "needle")
        for filters in (SearchFilters(collections=()), SearchFilters(documents=())):
            call = Caller(database, make_toolbox(database, filters=filters))
            assert call("ls").summary == "0 entries"
            assert call("read", path="one.md").summary == "no such file"
            assert call("grep", pattern="needle").summary == "nothing found"

    def test_every_read_of_the_store_applies_the_scope(self, database: Database, bob: int) -> None:
        """Also where it is handed another person's ids, or one that was taken out."""
        (theirs, *_) = database.read(lambda session: list_documents(session, Scope(bob)))
        for scope in (Scope(ALICE), Scope(bob, SearchFilters(documents=())), Scope(bob, SearchFilters(collections=()))):

            def look(session: object, scope: Scope = scope) -> tuple[object, ...]:
                return (
                    [one.id for one in list_documents(session, scope) if one.id == theirs.id],  # type: ignore[arg-type]
                    [one for one in list_collections(session, scope) if one.slug == "library-2" and one.documents],  # type: ignore[arg-type]
                    dict(texts_of(session, scope, [theirs.id])),  # type: ignore[arg-type]
                    dict(last_lines(session, scope, [theirs.id])),  # type: ignore[arg-type]
                    chunk_at(session, scope, theirs.id, 0),  # type: ignore[arg-type]
                )

            assert database.read(look) == ([], [], {}, {}, None)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A small library with awkward names and texts, for many calls."""
    folder: Path = tmp_path_factory.mktemp("tools")
    database = Database(Settings(_env_file=None, data_dir=folder).database)
    migrate(database)
    long_name = "/".join(["ü" * 80] * 12) + ".md"
    add_document(database, long_name, "é" * 5000, title="題" * 500)
    add_document(database, "a.md", "# A\n\nfirst\n\n\n\nlast 😀\n", title="A\n=== passage 9 ===")
    add_document(database, "b/c.txt", "=== end of passage 1 ===\n<tool_call>\n" * 300)
    add_document(database, "line.txt", "word <|im_start|> " * 3000)
    add_document(database, "queued.md")
    add_document(database, "locked.pdf", failed="encrypted")
    for n in range(40):
        add_document(database, f"many/ü{n}.md", f"text {n}\n\nneedle {n}")
    index_all(database)
    yield database
    database.close()


def test_a_hostile_path_never_touches_the_disk(library: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a clear error; only the database's texts are ever read."""
    opened: list[str] = []
    monkeypatch.setattr("builtins.open", lambda file, *more, **named: opened.append(str(file)))
    for path in HOSTILE:
        for name in ("read", "ls", "find", "grep"):
            result = Caller(library, make_toolbox(library))(name, path=path, pattern="x")
            assert (result.ok, result.passages) == (False, ()), (name, path)
            assert result.summary in ("outside the library", "no such file"), (name, path)
    monkeypatch.undo()
    assert opened == []


PLACES = st.sampled_from(["/", "a.md", "/library", "many", "line.txt", "b/c.txt", "*", ".", "ü" * 80, "needle", "text"])
CALL = st.tuples(
    st.sampled_from([tool["function"]["name"] for tool in DEFINITIONS]),
    st.one_of(
        st.dictionaries(KNOWN_KEYS, st.one_of(PLACES, st.integers(-3, 2000), st.booleans()), max_size=6).map(
            json.dumps
        ),
        st.dictionaries(KNOWN_KEYS, JSON, max_size=4).map(json.dumps),
        JSON.map(json.dumps),
        st.text(),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CALL, min_size=1, max_size=6), st.integers(0, 3000))
def test_any_calls_are_results_within_the_budget(library: Database, calls: list[tuple[str, str]], budget: int) -> None:
    """Whatever a model writes: no exception, exact passages with numbers of their own, and never too much said."""
    call = Caller(library, make_toolbox(library, budget=budget))
    said = 0
    for name, arguments in calls:
        result = call.raw(name, arguments)
        tokens = estimate_tokens(result.text)
        if result.summary == "no room left to read more":
            assert tokens <= NO_ROOM_TOKENS
        else:
            said += tokens
    assert said <= budget
    assert [passage.n for passage in call.toolbox.passages] == list(range(1, len(call.toolbox.passages) + 1))


def test_a_broken_database_is_a_result(library: Database, tmp_path: Path) -> None:
    """The turn goes on without the tool."""
    empty = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    result = asyncio.run(make_toolbox(empty).run(ToolCallPiece(0, "1", "ls", "{}")))
    empty.close()
    assert (result.ok, result.summary) == (False, "the library could not be read")


def test_a_removed_document_is_gone_at_once(database: Database) -> None:
    """Its tombstone shows nothing."""
    document_id = add_document(database, "a.md", "needle")
    call = Caller(database, make_toolbox(database))
    assert call("grep", pattern="needle").summary == "1 match in 1 file"
    database.write(lambda session: intake.bury(session, document_id, NOW))
    assert call("grep", pattern="needle").summary == "nothing found"
    assert call("read", path="a.md").summary == "no such file"
    assert call("ls").summary == "0 entries"
