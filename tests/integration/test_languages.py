"""Which languages documents are in: told once there is nothing else to do, and said where it matters."""

import threading
from collections.abc import Sequence

import pytest
from starlette.testclient import TestClient

from app.catalog import load_catalog
from app.clock import SystemClock
from app.ingest.errors import IngestError
from app.ingest.extract.language import UNKNOWN, language_of
from app.ingest.language_work import LanguageWork
from app.ingest.telling import Telling
from app.main import create_app
from app.search.builtin import BuiltinEmbedder
from app.settings import Settings
from app.store import readings
from app.web.language_hint import hint_words
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary
from tests.library_api import settle, upload

ENGLISH = "# Pump\n\nThe pump in the cellar is looked after once a week, and its filter is changed every spring.\n"
GERMAN = "# Pumpe\n\nDie Pumpe im Keller wird einmal in der Woche gewartet, der Filter wird im Frühling gewechselt.\n"
FRENCH = "# Pompe\n\nLa pompe de la cave est contrôlée chaque semaine et son filtre est changé au printemps.\n"
CHINESE = "# 水泵\n\n地下室的水泵每周检查一次，滤芯每年春天更换。\n"


class CountedTeller:
    """Says "fr" of a pompe and "de" of everything else, and how often it was asked; fails where it is told to."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.closed = 0
        self.fails = False

    def languages(self, heads: Sequence[str]) -> list[str]:
        if self.fails:
            raise IngestError("timeout")
        self.asked.append(len(heads))
        return ["fr" if "pompe" in head else "de" for head in heads]

    def close(self) -> None:
        self.closed += 1


def work_on(library: IngestLibrary, teller: CountedTeller, rest_s: float = 0.0) -> LanguageWork:
    return LanguageWork(library.database, SystemClock(), lambda: teller, threading.Event(), rest_s)


def told(library: IngestLibrary) -> dict[str, int]:
    return dict(library.database.read(lambda session: readings.languages(session, USER)))


@pytest.mark.parametrize(("text", "code"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr"), (CHINESE, "zh")])
def test_languages_are_told_apart(text: str, code: str) -> None:
    assert language_of(text) == code


@pytest.mark.parametrize("text", ["deadbeef cafebabe 0x1f 0x2e " * 6, "k1 k2 k3 k4 k5 k6 k7 k8 k9 " * 12, "x" * 300])
def test_figures_and_codes_are_no_language_of_their_own(text: str) -> None:
    """What tells languages apart calls these one ("zxx"), which the hint would count among those it names."""
    assert language_of(text) == UNKNOWN


@pytest.mark.parametrize("text", ["", "12 13 14\n" * 100, "# Pump", "```\nfor pump in pumps: pump.start()\n```\n" * 20])
def test_what_has_no_words_has_no_language(text: str) -> None:
    assert language_of(text) == UNKNOWN


def test_a_process_tells_many_at_once() -> None:
    teller = Telling()
    assert teller.languages([ENGLISH, GERMAN, "", CHINESE, "\ud800"]) == ["en", "de", UNKNOWN, "zh", UNKNOWN]
    teller.close()
    teller.close()


def test_a_process_that_fails_or_hangs_is_named() -> None:
    """One that prints something else, and one that is still busy when its time is over."""
    for module, wall_s, reason in (("this", 60.0, "internal"), ("app.ingest.extract.language", 0.001, "timeout")):
        teller = Telling(module, wall_s)
        with pytest.raises(IngestError) as caught:
            teller.languages([GERMAN] * 50)
        assert caught.value.reason == reason
        teller.close()


def test_each_document_is_told_once_and_again_when_it_changed(settings: Settings) -> None:
    teller = CountedTeller()
    with IngestLibrary(settings).start() as library:
        library.add_all({"a.md": ENGLISH, "b.md": GERMAN})
        library.settle()
        work = work_on(library, teller)
        assert work.step() == 0
        assert work.step() is None
        assert (teller.asked, told(library), teller.closed) == ([2], {"de": 2}, 1)
        library.add("a.md", FRENCH)
        library.settle()
        assert work_on(library, teller).step() == 0
        assert teller.asked == [2, 1]
        work.close()


def test_it_waits_until_nothing_is_read_for_a_while(settings: Settings) -> None:
    teller = CountedTeller()
    with IngestLibrary(settings).start() as library:
        library.add("a.md", ENGLISH)
        library.settle()
        wait = work_on(library, teller, rest_s=60).step()
        assert wait is not None
        assert 0 < wait <= 60
    with IngestLibrary(settings) as library:
        library.add("b.md", GERMAN)
        assert work_on(library, teller).step() is None
    assert teller.asked == []


def test_a_failure_is_logged_and_left_for_later(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    teller = CountedTeller()
    teller.fails = True
    with IngestLibrary(settings).start() as library:
        library.add("a.md", ENGLISH)
        library.settle()
        work = work_on(library, teller)
        assert work.step() is None
        assert (work.step() or 0) > 60
        assert told(library) == {}
    assert "languages_not_told documents=1 reason=timeout" in caplog.text


@pytest.mark.parametrize(
    "counts", [[], [("en", 90), ("de", 2)], [("en", 100), ("de", 5)], [("und", 50), ("en", 3)], [("en", 3)]]
)
def test_a_stray_file_is_no_reason_for_a_hint(counts: list[tuple[str, int]]) -> None:
    assert hint_words(counts, load_catalog()) == ""


def test_the_hint_counts_and_names_the_three_most_frequent() -> None:
    counts = [("en", 28), ("de", 6), ("fr", 3), ("xx", 2), ("zh", 1), ("und", 9)]
    assert hint_words(counts, load_catalog()).startswith(
        "12 of 40 documents are not in English (German 6, French 3, xx 2)."
    )


@pytest.mark.parametrize(
    ("model", "dim", "says"), [(BuiltinEmbedder.model, BuiltinEmbedder.dim, True), ("other", 64, False)]
)
def test_the_library_says_so_while_the_english_embedder_is_at_work(
    settings: Settings, model: str, dim: int, says: bool
) -> None:
    """What serves decides, not what is asked for."""
    notes = {f"{n}.md": f"{GERMAN}\nNummer {n}.\n" for n in range(3)}
    app = create_app(settings, embedder=WordEmbedder(model, dim))
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        upload(client, *notes.items())
        settle(client)
        database = client.app.state.docent.database  # type: ignore[attr-defined]
        assert LanguageWork(database, SystemClock(), CountedTeller, threading.Event(), 0.0).step() == 0
        page = client.get("/library").text
        assert ("3 of 3 documents are not in English (German 3)." in page) == says
        assert ('href="/settings#search"' in page) == says
        assert ("are not in English (German 3)." in client.get("/settings").text) == says


def test_the_hint_can_be_put_away_until_another_language_comes(settings: Settings) -> None:
    """The settings go on saying it; the settings' own values are not disturbed by it."""
    app = create_app(settings, embedder=WordEmbedder(BuiltinEmbedder.model, BuiltinEmbedder.dim))
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        database = client.app.state.docent.database  # type: ignore[attr-defined]

        def tell(*notes: tuple[str, str]) -> None:
            upload(client, *notes)
            settle(client)
            assert LanguageWork(database, SystemClock(), CountedTeller, threading.Event(), 0.0).step() == 0

        tell(*((f"{n}.md", f"{GERMAN}\nNummer {n}.\n") for n in range(3)))
        assert "Don&#39;t show this again" in client.get("/library").text
        assert client.post("/ui/library/languages/hide", follow_redirects=False).headers["location"] == "/library"
        assert "are not in English" not in client.get("/library").text
        assert "are not in English (German 3)." in client.get("/settings").text
        assert client.post("/ui/library/languages/hide", headers={"HX-Request": "true"}).text == ""
        assert "put_away" not in client.get("/api/settings").text
        tell(("fr.md", FRENCH))
        assert "4 of 4 documents are not in English (German 3, French 1)." in client.get("/library").text
