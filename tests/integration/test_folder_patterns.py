"""A folder's page: patterns, the count before they are saved, what they take out; what a removal shows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store import jobs
from app.store.models.library import Chunk
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import count, fill, sections, watch

HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    # Without its lifespan: the worker is the library's.
    app = create_app(settings)
    yield TestClient(app, base_url="http://127.0.0.1:8642")
    app.state.docent.database.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path / "notes", a=sections("apples"), drafts__b=sections("plums"), drafts__c=sections("figs"))
    (tmp_path / "notes" / ".env").write_text("CANARY=1")
    return tmp_path / "notes"


def test_patterns_are_counted_first_then_saved(client: TestClient, settings: Settings, root: Path) -> None:
    """The count changes nothing; saving takes out what is left out, and taking the pattern back brings it again."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
        page = client.get(f"/library/folders/{number}").text
        assert "1 key or password file" in page
        assert "Last change" in page
        assert "3 added" in page
        place = f"/ui/library/folders/{number}/patterns"
        counted = client.post(place, data={"action": "count", "exclude": "drafts/"}, headers=HTMX).text
        assert "1 file fits. 2 documents would go." in counted
        assert ">drafts/</textarea>" in counted
        library.scan(number)
        assert len(library.rows()) == 3
        assert "Saved." in client.post(place, data={"action": "save", "exclude": "drafts/"}, headers=HTMX).text
        library.settle()
        assert library.paths() == ["a.md"]
        assert_sound(library)
        assert "1 left out by a pattern" in client.get("/library").text
        saved = client.post(place, data={"action": "save", "include": "drafts/b.md\n"}, follow_redirects=False)
        assert (saved.status_code, saved.headers["location"]) == (303, f"/library/folders/{number}")
        library.settle()
        assert library.paths() == ["drafts/b.md"]
        counted = client.post(place, data={"action": "count", "include": "", "exclude": ""}).text
        assert "3 files fit. 2 files would be read." in counted
        same = client.post(place, data={"action": "count", "include": "drafts/b.md"}, headers=HTMX).text
        assert "Nothing would change." in same


def test_patterns_that_leave_nothing_do_not_look_like_a_lost_disk(
    client: TestClient, settings: Settings, root: Path
) -> None:
    """A person said so: the documents go, while an empty folder's would be kept; keys stay out whatever is wanted."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
        place = f"/ui/library/folders/{number}/patterns"
        client.post(place, data={"action": "save", "include": ".env\n*.nothing"}, headers=HTMX)
        library.settle()
        assert library.rows() == []
        assert library.scan_state(number).error is None


def test_a_pattern_that_can_not_be_used_says_so(client: TestClient, settings: Settings, root: Path) -> None:
    """Beside the form, with what was typed kept; other collections have no such page."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
        place = f"/ui/library/folders/{number}/patterns"
        for headers in (HTMX, {}):
            answer = client.post(place, data={"action": "save", "exclude": "../x"}, headers=headers)
            assert answer.status_code == 422
            assert "../x can&#39;t be used as a pattern" in answer.text
        assert client.post(place, data={"action": "other"}).status_code == 422
        assert client.get("/library/folders/999").status_code == 404
        upload = library.row(library.add("x.md", sections("figs"))).collection_id
        assert client.get(f"/library/folders/{upload}").status_code == 422
        assert client.post(f"/ui/library/folders/{upload}/patterns", data={"action": "save"}).status_code == 422


def test_an_open_page_is_told_when_a_folder_changed(client: TestClient, settings: Settings, root: Path) -> None:
    """Nothing while nothing did; then once, with what the page has to bring anew."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
        asked = re.search(r'hx-get="(/ui/library/changes\?seen=\w+)"', client.get("/library").text)
        assert asked
        library.scan(number)
        assert client.get(asked[1]).status_code == 204
        (root / "a.md").rename(root / "z.md")
        library.scan(number)
        told = client.get(asked[1])
        assert told.headers["HX-Trigger"] == "library-changed, library-folders, library-work"
        again = re.search(r'hx-get="([^"]+)"', told.text)
        assert again
        assert client.get(again[1]).status_code == 204
        assert "1 renamed" in client.get("/library").text


def test_a_removal_shows_how_far_it_is(client: TestClient, settings: Settings, root: Path) -> None:
    """The request takes no document out; nobody sees them, the folder can't be watched again before they are gone."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
    gone = client.post(f"/ui/library/folders/{number}/remove", headers=HTMX).text
    assert "No longer watching notes." in gone
    assert "Removing notes: 0 of 3 documents are out" in gone
    page = client.get("/library").text
    assert "Removing notes" in page
    assert "drafts/b.md" not in page
    refused = client.post("/ui/library/folders", data={"path": str(root)}, headers=HTMX)
    assert refused.status_code == 409
    assert "is just being removed" in refused.text
    with IngestLibrary(settings).start() as library:
        library.settle()
        assert_sound(library)
        assert library.orphans().is_sound
    assert "Removing notes" not in client.get("/library").text
    assert client.post("/ui/library/folders", data={"path": str(root)}, headers=HTMX).status_code == 200


def test_a_removal_that_was_given_up_goes_on_with_the_next_start(settings: Settings, root: Path) -> None:
    """Its job failed, say because the process was killed three times: the documents must not stay hidden for ever."""
    with IngestLibrary(settings).start() as library:
        number = watch(library, root)
    with IngestLibrary(settings) as library:
        library.folders.remove(USER, number)
        library.database.write(lambda session: jobs.drop_key(session, f"remove:{number}"))
        assert count(library, Chunk) > 0
        library.start()
        library.settle()
        assert count(library, Chunk) == 0
        assert_sound(library)
