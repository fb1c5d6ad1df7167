"""The search page: what fits best, who mentions it, facets and chips; all of it in the address."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient

from app.catalog import load_catalog
from app.search.mentions import Facets
from app.settings import Settings
from app.web.passage_view import marked
from app.web.search_view import Query, groups, pages
from tests.library_api import serving, settle, upload

NOTES = {
    "retention.md": "# Retention\n\nBackups are kept for thirty days. The retention is set in the job.\n",
    "guides/retention-two.md": "# More\n\nRetention of snapshots is seven days.\n",
    "guides/plan.txt": "The boiler is looked after on Mondays.\n",
    "备份.md": "# 计划\n\n每天晚上备份数据库。\n",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(_env_file=None, data_dir=tmp_path_factory.mktemp("data"))
    with serving(settings) as client:
        upload(client, *NOTES.items())
        settle(client)
        yield client


def read(client: TestClient, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return unescape(answer.text)


def links(page: str) -> list[str]:
    return re.findall(r'href="(/search\?[^"]*)"', page)


def test_an_empty_page_says_what_can_be_searched(client: TestClient) -> None:
    page = read(client, "/search")
    assert "4 documents can be searched" in page
    assert "A question finds the passages" in page


def test_passages_stand_with_their_words_marked_and_their_place(client: TestClient) -> None:
    page = read(client, "/search?q=retention")
    assert "<mark>retention</mark>" in page
    assert "<mark>Retention</mark>" in page
    assert re.search(r'href="/documents/\d+\?chunk=\d+#passage"', page)
    assert re.search(r"\d passages, best first. All the words are in 2 of 4 documents\.", page)
    assert "lines" in page or "line " in page


def test_every_document_that_mentions_it_is_counted(client: TestClient) -> None:
    page = read(client, "/search?q=retention&view=documents")
    assert "2 of 4 documents mention “retention”" in page
    assert "guides/retention-two.md" in page
    assert "plan.txt" not in page


def test_writing_without_spaces_is_found_and_marked(client: TestClient) -> None:
    page = read(client, "/search?q=备份")
    assert "<mark>备份</mark>" in page


def test_facets_count_and_lead_to_the_narrower_page(client: TestClient) -> None:
    page = read(client, "/search?q=retention+boiler")
    narrower = [link for link in links(page) if "type=text" in link]
    assert narrower
    page = read(client, narrower[0])
    assert "plan.txt" in page
    assert "retention.md" not in page
    assert "Remove this filter" in page
    assert links(page)


def test_a_path_narrows_and_its_chip_takes_it_out(client: TestClient) -> None:
    page = read(client, "/search?q=retention&view=documents&path=guides/")
    assert "1 of 2 documents mentions “retention”" in page
    assert "in guides/" in page
    assert "/search?q=retention&view=documents" in links(page)


@pytest.mark.parametrize("broken", ["since=tomorrow", "since=2026-05-01&until=2020-01-01"])
def test_a_day_that_is_none_is_told_and_nothing_is_searched(client: TestClient, broken: str) -> None:
    page = read(client, f"/search?q=retention&{broken}", 422)
    assert 'role="alert"' in page
    assert "<mark>" not in page


@pytest.mark.parametrize(
    "odd", ["collection=x", "type=exe", "year=abcd", "page=-4", "page=99999999999", "view=x", "collection=9" * 3]
)
def test_values_of_old_links_count_as_none(client: TestClient, odd: str) -> None:
    read(client, f"/search?q=retention&{odd}")


def test_nothing_found_says_what_could_help(client: TestClient) -> None:
    assert "Fewer or other words may find it." in read(client, "/search?q=zeppelin&view=documents")
    assert "Take one out above." in read(client, "/search?q=zeppelin&view=documents&type=pdf")


def test_words_are_only_words(client: TestClient) -> None:
    page = client.get("/search", params={"q": '"><script>alert(1)</script> NEAR(', "view": "documents"}).text
    assert "<script>alert" not in page


def test_collections_of_others_are_not_named(client: TestClient) -> None:
    assert "4242" in read(client, "/search?q=retention&collection=4242")


def test_the_library_leads_to_the_page(client: TestClient) -> None:
    assert "/search?q=retention" in read(client, "/library?q=retention")


def test_a_snippet_shows_where_most_of_the_words_stand() -> None:
    text = "pump " + "filler words " * 60 + "the pump and the valve stand here " + "more words " * 60
    parts = marked(text, "pump valve")
    assert {part.text for part in parts if part.marked} == {"pump", "valve"}
    assert parts[0].text == "… "
    assert parts[-1].text.endswith(" …")


def test_a_snippet_of_a_text_without_the_words_is_its_beginning() -> None:
    assert marked("short text", "zeppelin")[0].text == "short text"
    assert marked("x" * 1000, "y y")[-1].text.endswith(" …")


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("How to total the toll of tokens", "how to tok", ["tok"]),
        ("To be or not to be", "to be", ["To", "be", "to", "be"]),
        ("restored and restorer_unix", "restore", ["restored", "restorer"]),
        ("the keys and the keyboard", "key", ["keys"]),
        ("a snapshot of it", "napsh", ["napsh"]),
    ],
)
def test_what_is_marked_is_what_was_looked_for(text: str, words: str, found: list[str]) -> None:
    """Words that every text holds are not marked beside others, nor is what only begins alike; a part of a word is
    marked where the word stands nowhere by itself."""
    assert [part.text for part in marked(text, words) if part.marked] == found


def test_a_snippet_leaves_out_the_rulers_of_plain_text() -> None:
    shown = marked("Restore\n=======\n\nText | a\n-----|----\n", "zz")
    assert "".join(part.text for part in shown) == "Restore Text | a |"


def test_long_lists_go_on_and_back() -> None:
    catalog = load_catalog()
    there = pages(Query("a", view="documents", page=2), 120, 50, catalog)
    assert (there.words, there.previous, there.next) == (
        "51–100 of 120",
        "/search?q=a&view=documents",
        "/search?q=a&view=documents&page=3",
    )
    assert pages(Query("a"), 50, 50, catalog).words == ""
    assert pages(Query("a", page=3), 120, 50, catalog).next == ""


def test_a_chosen_year_is_taken_out_by_the_same_link() -> None:
    facets = Facets((), (), (("2025", 3), ("2026", 4)), has_words=True)
    (group,) = groups(Query("a", year="2025"), facets, {}, load_catalog())
    assert [(choice.words, choice.chosen, choice.href) for choice in group.choices] == [
        ("2026", False, "/search?q=a&year=2026"),
        ("2025", True, "/search?q=a"),
    ]


def test_what_is_far_from_the_question_says_so_and_is_no_hit_in_the_library(client: TestClient) -> None:
    """The search page shows what comes nearest, with its score; the library lists only what holds the words or comes
    close."""
    assert "0 of 4 documents mention all the words, and no passage is close." in read(client, "/search?q=zzzqqq")
    page = read(client, "/library?q=zzzqqq")
    assert "No passage holds these words or comes close to them." in page
    assert '<ol class="search-hits">' not in page
    assert '<ol class="search-hits">' in read(client, "/library?q=retention")


def test_facets_are_a_sheet_where_there_is_no_room_beside(client: TestClient) -> None:
    page = read(client, "/search?q=retention+boiler")
    assert 'popovertarget="facets"' in page
    assert re.search(r'<section class="search-facets" id="facets" popover', page)
    assert 'popovertarget="facets"' not in read(client, "/search?q=zeppelin&collection=99")
