"""Another embedder, chosen: built beside the one that serves, switched to, gone back to, kept or cancelled."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from app.errors import ConflictError
from app.search.choice import Spec
from app.search.embeddings import FloatMatrix
from app.settings import EDITABLE, Settings
from app.store.models.library import Chunk
from app.store.models.setup import Setting
from app.store.models.vectors import Generation
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, assert_sound
from tests.ingest_parts import count, sections
from tests.integration.generation_kit import NEW, URL, Library
from tests.waiting import until


class Gated(WordEmbedder):
    """Makes so many batches, then waits until it is let."""

    def __init__(self, batches: int = 0) -> None:
        super().__init__("new", 32, {"flowers": "garden"})
        self.left, self.go, self.texts = batches, threading.Event(), 0

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        if self.left <= 0:
            assert self.go.wait(30)
        self.left -= 1
        self.texts += len(texts)
        return super().embed_passages(texts)


def saved(library: Library) -> dict[str, object]:
    """What the page has changed; other rows of the table are Docent's own."""
    query = select(Setting.key, Setting.value).where(Setting.key.in_(EDITABLE))
    return {row.key: row.value for row in library.life.database.read(lambda session: session.execute(query).all())}


def test_the_old_one_serves_until_the_switch_and_can_be_gone_back_to(settings: Settings) -> None:
    """Choose, build, switch, back, switch, keep: search by meaning works at each step, and the settings follow."""
    with Library(settings).filled() as library:
        assert library.decide.choose(USER, NEW, 32) == "building"
        assert saved(library) == {"embed_base_url": URL, "embed_model": "new", "embed_api_key": NEW.api_key}
        library.until_built()
        assert library.states() == {"old": "active", "new": "building"}
        assert library.new.queries == 0
        assert library.finds_by_meaning()
        library.decide.switch(USER, library.row("new").id)
        assert library.states() == {"old": "retired", "new": "active"}
        assert library.finds_by_meaning()
        assert library.new.queries == 1
        library.decide.switch(USER, library.row("old").id)
        assert library.states() == {"old": "active", "new": "retired"}
        assert saved(library) == {}
        assert library.finds_by_meaning()
        library.decide.switch(USER, library.row("new").id)
        (kept,) = library.decide.standing().kept
        assert kept.is_reachable
        assert kept.bytes > 3 * 2 * 64
        library.decide.keep_new(USER)
        assert library.decide.standing().kept == ()
        until(lambda: library.vectors("old") == 0, "the old vectors are gone")
        until(lambda: not library.life.database.read(is_dropping), "and their row")
        assert library.finds_by_meaning()
        assert_sound(library.life)


def is_dropping(session) -> bool:  # type: ignore[no-untyped-def]
    return session.scalar(select(Generation.id).where(Generation.state == "dropping")) is not None


def test_what_is_added_and_edited_meanwhile_is_in_both(settings: Settings) -> None:
    """The old one gets it as ever, the build picks it up, before and after it is complete."""
    new = Gated(0)
    with Library(settings, new).filled() as library:
        library.decide.choose(USER, NEW, 32)
        late = library.life.add("late.md", sections("late"))
        new.go.set()
        library.life.wait_for(late, "ready")
        library.until_built()
        assert library.vectors("old") == library.vectors("new") == 4
        library.life.wait_for(library.life.add("later.md", sections("later")), "ready")
        until(lambda: library.vectors("new") == 5, "the one that waits for the switch keeps up")
        library.decide.switch(USER, library.row("new").id)
        assert {row.status for row in library.life.rows()} == {"ready"}
        assert_sound(library.life)


def test_what_the_kept_one_lacks_is_embedded_when_one_goes_back(settings: Settings) -> None:
    """Nothing is called ready whose vectors are another generation's."""
    with Library(settings).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        library.decide.switch(USER, library.row("new").id)
        library.life.wait_for(library.life.add("late.md", sections("late")), "ready")
        assert library.vectors("old") == 3
        library.life.worker.stop()
        library.decide.switch(USER, library.row("old").id)
        late = next(row for row in library.life.rows() if row.path == "late.md")
        assert late.status == "embedding"
        assert library.life.orphans().unready == 0
    with Library(settings).start() as library:
        library.life.settle()
        assert library.vectors("old") == 4
        assert_sound(library.life)


def test_a_build_goes_on_where_it_was_after_a_restart(settings: Settings) -> None:
    """Only what is missing is embedded."""
    names = [f"part{number}" for number in range(20)]
    first = Gated(2)
    with Library(settings, first).start() as library:
        library.life.add("big.md", sections(*names))
        library.life.settle()
        library.decide.choose(USER, NEW, 32)
        until(lambda: library.vectors("new") == 16, "two batches")
        first.go.set()
        first.left = -1
        library.life.worker.stop()
        before = library.vectors("new")
    second = Gated(100)
    with Library(settings, second).start() as library:
        library.until_built()
        assert library.vectors("new") == count(library.life, Chunk) == 20
        assert second.texts == 20 - before
        assert library.states() == {"old": "active", "new": "building"}


def test_a_pause_outlives_a_restart_and_is_ended(settings: Settings) -> None:
    """Nothing is embedded while it lasts."""
    gated = Gated(0)
    with Library(settings, gated).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.decide.pause(paused=True)
        gated.go.set()
    with Library(settings) as library:
        assert library.row("new").paused_at is not None
        library.start()
        library.life.wait_for(library.life.add("late.md", sections("late")), "ready")
        assert library.row("new").built_at is None
        library.decide.pause(paused=False)
        library.until_built()


def test_cancelling_deletes_what_was_built_and_the_settings_name_the_old_one_again(settings: Settings) -> None:
    """Also while a batch is on its way: it is not stored. The key goes at once."""
    gated = Gated(0)
    with Library(settings, gated).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.decide.cancel(USER)
        gated.go.set()
        assert saved(library) == {}
        until(lambda: not library.life.database.read(is_dropping), "it is gone")
        assert library.vectors("new") == 0
        assert library.states() == {"old": "active"}
        with pytest.raises(ConflictError):
            library.decide.pause(paused=True)
        assert library.finds_by_meaning()
        assert_sound(library.life)


def test_a_server_that_goes_away_makes_the_build_wait_and_say_why(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Search is not touched; once it answers, the reason is gone."""
    new = WordEmbedder("new", 32)
    new.is_down = True
    with caplog.at_level(logging.INFO, "app.ingest"), Library(settings, new).filled() as library:
        library.decide.choose(USER, NEW, 32)
        until(lambda: "generation_waits" in caplog.text, "it waits and said so")
        assert library.row("new").problem == "embed_unavailable"
        assert library.finds_by_meaning()
        new.is_down = False
        until(lambda: library.row("new").compared is not None, "tried again", 20)
        assert library.row("new").problem is None
        assert "generation_goes_on" in caplog.text


def test_a_server_that_makes_other_vectors_now_is_not_believed(settings: Settings) -> None:
    """Vectors of two models never get into one generation."""
    with Library(settings, WordEmbedder("new", 16)).filled() as library:
        library.decide.choose(USER, NEW, 32)
        until(lambda: library.row("new").problem == "embed_changed", "noticed")
        assert library.vectors("new") == 0
        assert library.finds_by_meaning()


def test_questions_see_one_generation_while_it_is_switched_to_and_fro(settings: Settings) -> None:
    """A vector of 64 numbers never meets a matrix of 32; each of many searches side by side finds its document by
    meaning, whichever generation it fell on."""
    with Library(settings).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        ids = [library.row("new").id, library.row("old").id]
        stop = threading.Event()

        def ask() -> int:
            asked = 0
            while not stop.is_set():
                assert library.finds_by_meaning()
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                for number in range(12):
                    library.decide.switch(USER, ids[number % 2])
                    assert library.finds_by_meaning()
            finally:
                stop.set()
            assert sum(one.result() for one in asking) > 12
        assert library.new.queries > 4
        assert len(library.life.index.generations) <= 2


def test_nothing_has_to_be_built_for_an_empty_library(settings: Settings) -> None:
    """The new one serves at once; nothing is kept, since there is nothing to go back to."""
    with Library(settings).start() as library:
        assert library.decide.choose(USER, NEW, 32) == "active"
        library.life.wait_for(library.life.add("a.md", sections("one")), "ready")
        assert library.states() == {"new": "active"}
        assert library.decide.choose(USER, NEW, 32) == "same"


def test_choosing_what_serves_gives_the_build_up(settings: Settings) -> None:
    """It is another way to say cancel."""
    with Library(settings, Gated(0)).filled() as library:
        library.decide.choose(USER, NEW, 32)
        assert library.decide.choose(USER, Spec("old"), 64) == "same"
        assert library.states() == {"old": "active"}
        library.new.go.set()  # type: ignore[attr-defined]


def test_what_served_before_is_chosen_again_without_embedding(settings: Settings) -> None:
    """Its vectors were kept."""
    with Library(settings).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.until_built()
        library.decide.switch(USER, library.row("new").id)
        before = library.vectors("old")
        assert library.decide.choose(USER, Spec("old"), 64) == "building"
        until(lambda: library.row("old").compared is not None, "built from what was there")
        assert library.vectors("old") == before


def test_an_unfinished_build_can_not_be_switched_to(settings: Settings) -> None:
    """Nor one that is no longer there."""
    gated = Gated(0)
    with Library(settings, gated).filled() as library:
        library.decide.choose(USER, NEW, 32)
        number = library.row("new").id
        with pytest.raises(ConflictError) as caught:
            library.decide.switch(USER, number)
        assert caught.value.code == "generation_not_built"
        library.decide.cancel(USER)
        with pytest.raises(ConflictError) as caught:
            library.decide.switch(USER, number)
        assert caught.value.code == "generation_gone"
        gated.go.set()


def test_it_switches_by_itself_where_that_was_asked_for(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """And not where it was taken back."""
    gated = Gated(0)
    with caplog.at_level(logging.INFO, "app.ingest"), Library(settings, gated).filled() as library:
        library.decide.choose(USER, NEW, 32)
        library.decide.set_auto_switch(auto=True)
        gated.go.set()
        until(lambda: "by=itself" in caplog.text, "switched and said so")
        assert library.states()["new"] == "active"
        assert {row.status for row in library.life.rows()} == {"ready"}
