"""Names in a question, resolved in a real database: what they stand for, what they narrow, what is said of the rest."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, date, datetime

import pytest

from app.api.asked import Asked, filter_facts, read_asked
from app.rag.prompts import PastTurn
from app.search import fulltext
from app.store import collections, intake, naming, suggesting
from app.store.engine import Database, Session
from app.store.scope import EVERYWHERE, SearchFilters
from tests.integration.library_rows import NOW, add_document, add_user, set_status

TODAY = date(2026, 12, 1)
ME = 1


def collection(database: Database, name: str, *paths: str, owner: int = ME) -> tuple[int, list[int]]:
    """A folder's collection with one read document for each path."""

    def work(session: Session) -> tuple[int, list[int]]:
        made = collections.create_collection(session, owner, name, "folder", f"/{name}/{owner}", NOW)
        new = [intake.NewDocument(made, "folder", path, hashlib.sha256(path.encode()).hexdigest(), 5) for path in paths]
        ids = intake.add_documents(session, new, NOW)
        for id_ in ids:
            known = {"title": "", "mime": "text/markdown", "encoding": "utf-8", "pages": None, "text_yield": None}
            intake.mark_read(session, id_, {**known, "text": "Words."}, NOW)
        return made, ids

    return database.write(work)


def asked(
    database: Database,
    question: str,
    scope: SearchFilters = EVERYWHERE,
    history: Sequence[PastTurn] = (),
    user_id: int = ME,
) -> Asked:
    return database.read(lambda session: read_asked(session, user_id, question, scope, history, TODAY))


def codes(found: Asked) -> list[str]:
    return [remark.code for remark in found.remarks]


@pytest.mark.parametrize(
    "name",
    [
        "Net/Router.md",
        "net/router.MD",
        "router.md",
        "router",
        "net/router",
        "notes/net/router.md",
        "/notes/net/router.md",
        '"The router, explained"',
    ],
)
def test_a_document_is_named_by_path_by_its_end_without_its_extension_or_by_title(
    database: Database, name: str
) -> None:
    """In any case of letters, also behind its collection's slug, as the tools write it."""
    _, (router, _) = collection(database, "Notes", "Net/Router.md", "net/backrouter.md")

    def titled(session: Session) -> None:
        known = {"mime": "text/markdown", "encoding": "utf-8", "pages": None, "text_yield": None}
        intake.mark_read(session, router, {**known, "title": "The router, explained", "text": "Words."}, NOW)

    database.write(titled)
    titled_id = add_document(database, "t.md", "Some words.", title="The router, explained")
    database.write(lambda session: fulltext.index_document(session, titled_id))
    found = asked(database, f"Which ports does @{name} open?")
    assert found.filters == SearchFilters(documents=(titled_id if name.startswith('"') else router,))
    assert len(found.named_documents) == 1
    assert found.query == "Which ports does open?"


def test_letters_are_the_same_in_either_unicode_form(database: Database) -> None:
    """A Mac stores ü as u and two dots; ß and SS are one."""
    _, ids = collection(database, "Notes", "Gru\u0308n.md", "Straße.md", "100%_sure.md")
    assert asked(database, "@grün.md").filters.documents == (ids[0],)
    assert asked(database, "@STRASSE.md").filters.documents == (ids[1],)
    assert asked(database, "@100%_sure.md").filters.documents == (ids[2],)
    assert asked(database, "@100xysure.md").filters == EVERYWHERE


def test_the_whole_path_goes_before_a_part_of_it(database: Database) -> None:
    """`@README.md` is the one on top, not each of fifty below it; where none is on top, all are meant."""
    _, ids = collection(database, "Notes", "README.md", "a/README.md", "b/README.md")
    found = asked(database, "@README.md")
    assert (found.filters.documents, codes(found)) == ((ids[0],), [])
    _, other = collection(database, "Other", "a/LOG.md", "b/LOG.md")
    found = asked(database, "@LOG.md")
    assert (found.filters.documents, codes(found)) == (tuple(other), ["chip_many"])


def test_of_too_many_documents_of_one_name_the_first_are_taken(database: Database) -> None:
    """And it is said how many there are."""
    collection(database, "Notes", *(f"{n:02}/log.md" for n in range(25)))
    found = asked(database, "@log.md")
    assert found.filters.documents is not None
    assert len(found.filters.documents) == naming.NAMED_MAX
    assert [(remark.code, remark.n) for remark in found.remarks] == [("chip_too_many", 25)]


def test_a_folder_is_a_path_prefix_and_a_slug_with_a_slash_its_collection(database: Database) -> None:
    """Several folders, or a folder beside a document, become documents."""
    notes, ids = collection(database, "My notes", "net/a.md", "deep/net/b.md", "net.md", "deep/c.md")
    assert asked(database, "@net/ ports").filters == SearchFilters((notes,), path="net/")
    assert asked(database, "@my-notes/deep/ ports").filters == SearchFilters((notes,), path="deep/")
    assert asked(database, "@my-notes/ ports").filters == SearchFilters((notes,))
    assert asked(database, "@net/ @deep/c.md").filters == SearchFilters(documents=(ids[0], ids[3]))
    assert codes(asked(database, "in @nowhere/ ?")) == ["chip_no_folder"]


def test_collections_add_up_and_narrow_names(database: Database) -> None:
    """A name is looked for inside of the collections that are named."""
    one, first = collection(database, "One", "a.md")
    two, second = collection(database, "House papers", "a.md")
    assert asked(database, "#one and #house-papers").filters == SearchFilters((one, two))
    assert asked(database, '#"House papers" rent').filters == SearchFilters((two,))
    found = asked(database, "@a.md in #house-papers")
    assert (found.filters, codes(found)) == (SearchFilters((two,), tuple(second)), [])
    assert found.question_plain == "a.md in House papers"
    assert asked(database, "@a.md").filters.documents == (*first, *second)


def test_types_and_days_narrow(database: Database) -> None:
    """Words people use for a type are known; the narrowest days hold."""
    found = asked(database, "invoices type:word,pdf since:2024 after:2024-03 before:2025")
    assert found.filters == SearchFilters(
        types=("docx", "pdf"), since=datetime(2024, 3, 1, tzinfo=UTC), until=datetime(2025, 1, 1, tzinfo=UTC)
    )
    assert (found.query, found.question_plain) == ("invoices", "invoices")
    assert asked(database, "let type:string be").filters == EVERYWHERE


def test_chips_narrow_the_scope_of_the_chat_and_never_widen_it(database: Database) -> None:
    """What lies outside is found by nobody, and that is said."""
    one, (inside,) = collection(database, "One", "a.md")
    two, _ = collection(database, "Two", "b.md")
    scope = SearchFilters((one,))
    assert asked(database, "@a.md", scope).filters == SearchFilters((one,), (inside,))
    for question in ("@b.md", "#two", "@two/"):
        found = asked(database, question, scope)
        assert codes(found) == ["chip_outside"], question
        assert found.filters.collections in ((), (one,)), question
    assert asked(database, "type:pdf", SearchFilters(types=("pdf", "html"))).filters.types == ("pdf",)
    assert asked(database, "@a.md", SearchFilters(documents=(inside + 1,))).filters.documents == ()
    assert two not in (asked(database, "#one", scope).filters.collections or ())


def test_documents_of_the_request_are_named_too(database: Database) -> None:
    """Without a chip they are what the question is about."""
    _, (one, _) = collection(database, "One", "a.md", "b.md")
    found = asked(database, "ports?", SearchFilters(documents=(one,)))
    assert [row.path for row in found.named_documents] == ["a.md"]
    assert asked(database, "ports?", SearchFilters(documents=(one,)), user_id=add_user(database)).named_documents == ()


@pytest.mark.parametrize("question", ["@secret.md", "@secret", "#private", "@private/", "@private/secret.md"])
def test_what_belongs_to_somebody_else_has_no_name(database: Database, question: str) -> None:
    """It is answered as if it did not exist."""
    collection(database, "Private", "secret.md", owner=add_user(database))
    found = asked(database, question)
    assert (found.chips, found.filters, found.named_documents) == ((), EVERYWHERE, ())
    assert found.remarks[0].code.startswith("chip_no_")


def test_a_name_that_nothing_has_is_text_and_said(database: Database) -> None:
    """Where code writes it, nothing is said."""
    found = asked(database, "What is in @nothing.md?")
    assert (found.query, found.filters) == ("What is in @nothing.md?", EVERYWHERE)
    assert [(remark.code, remark.name) for remark in found.remarks] == [("chip_no_document", "nothing.md")]
    assert codes(asked(database, "#nothing")) == ["chip_no_collection"]
    assert codes(asked(database, "Why does `@nothing` fail? #include <x> @media (x)")) == []


def test_a_named_document_that_cannot_be_searched_is_said(database: Database) -> None:
    """Waiting to be read, or not to be read at all."""
    waiting = add_document(database, "later.md")
    add_document(database, "locked.pdf", failed="encrypted")
    again = add_document(database, "again.md", "Known words.")
    set_status(database, again, "queued")
    assert codes(asked(database, "@later.md")) == ["chip_waiting"]
    assert codes(asked(database, "@locked.pdf")) == ["chip_failed"]
    assert codes(asked(database, "@again.md")) == [], "its earlier text is still searched"
    assert asked(database, "@later.md").named_documents[0].id == waiting


def test_a_follow_up_keeps_the_chips_of_the_question_it_leans_on(database: Database) -> None:
    """As long as each question leans on the one before; one with a chip of its own, or on something else, does not."""
    _, (one, two) = collection(database, "One", "a.md", "b.md")
    first = PastTurn("When does the nightly backup in @a.md start?", "At two.")
    found = asked(database, "And how long does it take?", history=[first])
    assert found.filters.documents == (one,)
    assert [chip.carried for chip in found.chips] == [True]
    assert found.query == "And how long does it take?"
    assert found.past == (PastTurn("When does the nightly backup in start?", "At two."),)
    assert found.history == (PastTurn("When does the nightly backup in a.md start?", "At two."),)
    second = PastTurn("And how long does it take?", "An hour.")
    assert asked(database, "Is that long?", history=[first, second]).filters.documents == (one,)
    assert asked(database, "And in @b.md?", history=[first]).filters.documents == (two,)
    assert asked(database, "And in @nothing.md?", history=[first]).filters == EVERYWHERE
    fresh = "Which sourdough recipe needs the longest fermentation time?"
    assert asked(database, fresh, history=[first]).filters == EVERYWHERE
    between = [first, PastTurn(fresh, "None.")]
    assert asked(database, "And why?", history=between).filters == EVERYWHERE


def test_a_thousand_names_cost_no_more_than_sixteen(database: Database) -> None:
    """Of all questions of the talk together; those of the newest are looked up first."""
    _, (one,) = collection(database, "One", "a.md")
    many = PastTurn(" ".join(f"@nothing{n}.md" for n in range(40)), "None.")
    found = asked(database, "@a.md ports", history=[many] * 10)
    assert found.filters.documents == (one,)
    statements = asked(database, "@a.md " + " ".join(f"@no{n}" for n in range(40)))
    assert statements.filters.documents == (one,)


def test_the_filters_in_effect_are_told_as_plain_values() -> None:
    """Only those that are set; numbers of a turn are JSON."""
    filters = SearchFilters((1,), None, "a/", ("pdf",), datetime(2024, 1, 1, tzinfo=UTC))
    assert filter_facts(filters) == {
        "collections": [1],
        "path": "a/",
        "types": ["pdf"],
        "since": "2024-01-01T00:00:00+00:00",
    }
    assert filter_facts(EVERYWHERE) == {}


def names(database: Database, beginning: str, kind: suggesting.NameKind = "document", user_id: int = ME) -> list[str]:
    return [row.name for row in database.read(lambda session: suggesting.suggest(session, user_id, beginning, kind))]


def test_suggestions_begin_with_the_letters_then_hold_them_then_are_titled_so(database: Database) -> None:
    """File names before folders; the same path twice is told apart by its collection; nothing typed: the newest."""
    collection(database, "One", "net/router.md", "router/other.md", "old-router.md", "a.md")
    titled = add_document(database, "x.md", "Some words.", title="A router at home")
    database.write(lambda session: fulltext.index_document(session, titled))
    assert names(database, "rout") == ["net/router.md", "router/other.md", "old-router.md", "x.md"]
    assert names(database, "net/r") == ["net/router.md"]
    assert names(database, "ROUTER.MD")[0] == "net/router.md"
    assert names(database, "") == ["x.md", "a.md", "old-router.md", "router/other.md", "net/router.md"]
    assert names(database, 'no"thing') == names(database, "zzz") == []
    collection(database, "Two", "a.md")
    assert sorted(names(database, "a.m")) == ["one/a.md", "two/a.md"]
    for name in names(database, "a.m"):
        assert len(asked(database, f"@{name}").named_documents) == 1


def test_suggested_collections_are_slugs_of_what_is_called_so(database: Database) -> None:
    """By slug or name, beginning before middle; nobody else's."""
    collection(database, "House papers")
    collection(database, "Old house")
    collection(database, "House of others", owner=add_user(database))
    assert names(database, "hou", "collection") == ["house-papers", "old-house"]
    assert names(database, "papers", "collection") == ["house-papers"]
    assert "house-papers" in names(database, "", "collection")
