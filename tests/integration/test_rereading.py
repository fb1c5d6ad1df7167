"""A newer Docent reads again what an older one could not: once, in the background, and nothing findable is lost."""

import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import delete, update

from app.clock import SystemClock
from app.ingest.removal import remove_content
from app.ingest.rereading import EXTRACTORS, LOOK_S, Rereading
from app.ingest.yielding import Yielding
from app.settings import Settings
from app.store import intake
from app.store.documents import DocumentRow
from app.store.engine import Session
from app.store.models.library import Document
from app.store.models.setup import Setting
from app.store.rereading import KEY
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, GatedExtractor, fill, found, sections, watch
from tests.waiting import until

TABLE = "part,price\n" + "".join(f"pump{n},{n}\n" for n in range(40))
RTF = b"{\\rtf1 still unsupported}"


def age(library: IngestLibrary, **values: Any) -> None:
    """Lets every document be one that an older Docent wrote: before the version was kept, an hour ago."""

    def work(session: Session) -> None:
        session.execute(delete(Setting).where(Setting.key == KEY))
        an_hour_ago = library.clock.now() - timedelta(hours=1)
        session.execute(update(Document).values(updated_at=an_hour_ago, **values))

    library.database.write(work)


def refuse(library: IngestLibrary, document_id: int) -> None:
    """Lets a document be one that an older Docent refused."""

    def work(session: Session) -> None:
        remove_content(session, document_id)
        long_ago = library.row(document_id).updated_at
        intake.mark_failed(session, document_id, "unsupported", long_ago, mime="", title="")

    library.database.write(work)


def settle(library: IngestLibrary) -> None:
    """Waits until the lane is through the library, and everything it queued is read."""

    def is_through(session: Session) -> bool:
        row = session.get(Setting, KEY)
        return row is not None and row.value["after"] is None

    until(lambda: library.database.read(is_through), "the library was walked through")
    library.settle()


def states(library: IngestLibrary, ids: list[int]) -> list[tuple[str, str | None]]:
    return [(row.status, row.error) for row in map(library.row, ids)]


def lane(library: IngestLibrary, version: int) -> Rereading:
    """The lane of a Docent with that version, to be stepped by hand."""
    yielding = Yielding(SystemClock(), lambda: False, threading.Event())
    return Rereading(library.database, library.clock, yielding, library.worker.wake, version)


def older(settings: Settings, contents: Mapping[str, bytes | str], refused: int, **values: Any) -> list[int]:
    """A library that an older Docent has left; the first `refused` documents were unsupported."""
    with IngestLibrary(settings).start() as library:
        ids = library.add_all(contents)
        settle(library)
        age(library, **values)
        for number in ids[:refused]:
            refuse(library, number)
    return ids


def read_at(rows: list[DocumentRow]) -> list[Any]:
    return [row.indexed_at for row in rows]


def test_what_was_refused_is_read_by_itself_and_only_once(settings: Settings) -> None:
    """What nobody can read yet stays refused until there is a newer version."""
    ids = older(settings, {"a.csv": TABLE, "b.rtf": RTF, "c.md": sections("pump")}, refused=2)
    with IngestLibrary(settings).start() as library:
        settle(library)
        assert states(library, ids) == [("ready", None), ("failed", "unsupported"), ("ready", None)]
        assert library.row(ids[0]).mime == "text/csv"
        assert found(library, "pump7") == {ids[0]}
        last = [library.row(number).updated_at for number in ids]
        assert_sound(library)
    with IngestLibrary(settings).start() as library:
        settle(library)
        assert lane(library, EXTRACTORS).step() is None
        assert [library.row(number).updated_at for number in ids] == last
        age(library)
        seen = library.row(ids[1]).updated_at
        following = lane(library, EXTRACTORS + 1)
        assert following.step() == 0
        library.settle()
        assert following.step() is None
        assert states(library, ids)[1] == ("failed", "unsupported")
        assert library.row(ids[1]).updated_at > seen
        assert lane(library, EXTRACTORS).step() is None


def test_a_table_that_was_plain_text_is_read_as_one(settings: Settings) -> None:
    """So are settings; prose, programs and what was read as what it is are left alone."""
    contents = {"a.csv": TABLE, "b.ini": "[pump]\nspeed = 3\n", "c.txt": "Prose.", "d.py": "x = 1\n", "e.md": "# Pump"}
    ids = older(settings, contents, refused=0, mime="text/plain")
    with IngestLibrary(settings) as library:
        before = [library.row(number) for number in ids]
        library.start()
        settle(library)
        after = [library.row(number) for number in ids]
        changed = [old != new for old, new in zip(read_at(before), read_at(after), strict=True)]
        assert changed == [True, True, False, False, False]
        assert after[0].mime == "text/csv"


def test_restructured_text_whose_code_was_prose_is_read_again(settings: Settings) -> None:
    """Its words stay the same, so that what cites them stays right; its code is marked then."""
    (number,) = older(settings, {"a.rst": "Pump\n====\n\nStart it::\n\n   pump start\n"}, refused=0)
    with IngestLibrary(settings) as library:
        flat = "Pump\n====\n\nStart it:\n\n   pump start\n"
        library.database.write(lambda session: session.execute(update(Document).values(text=flat)))
        library.start()
        settle(library)
        text = library.detail(number).text or ""
        assert "\t   pump start" in text
        assert text.split() == flat.split()


def test_what_is_found_stays_found_until_the_new_text_is_there(settings: Settings) -> None:
    """While it waits, while it is read, and when it can't be read any more."""
    (number,) = older(settings, {"a.csv": TABLE}, refused=0, mime="text/plain")
    extractor, embedder = GatedExtractor(), CountingEmbedder()
    with IngestLibrary(settings, extractor=extractor, embedder=embedder).start() as library:
        assert extractor.asked.wait(30)
        assert library.row(number).status == "parsing"
        assert found(library, "pump7") == {number}
        library.files.remove(library.row(number).sha256)
        extractor.go.set()
        settle(library)
        assert states(library, [number]) == [("ready", None)]
        assert found(library, "pump7") == {number}


def test_a_folder_that_is_away_costs_nothing(settings: Settings, tmp_path: Path) -> None:
    """What was refused there stays refused for its format, not for being gone; what was read stays."""
    root = tmp_path / "notes"
    fill(root, old="x")
    (root / "a.csv").write_text(TABLE)
    (root / "b.csv").write_text(TABLE)
    with IngestLibrary(settings).start() as library:
        watch(library, root)
        settle(library)
        ids = {row.path: row.id for row in library.rows()}
        age(library, mime="text/plain")
        refuse(library, ids["b.csv"])
    root.rename(tmp_path / "away")
    with IngestLibrary(settings).start() as library:
        settle(library)
        assert states(library, [ids["a.csv"], ids["b.csv"]]) == [("ready", None), ("failed", "unsupported")]
        assert ids["a.csv"] in found(library, "pump7")


def test_whatever_else_is_to_be_read_comes_first(settings: Settings) -> None:
    """Nothing is queued while anything waits; then a few at a time, in one pass."""
    ids = older(settings, {f"{n}.csv": f"{TABLE}x,{n}\n" for n in range(20)}, refused=20)
    with IngestLibrary(settings) as library:
        new = library.add("new.md", "# New")
        work = lane(library, EXTRACTORS)
        assert work.step() == LOOK_S
        assert {state for state, _ in states(library, ids)} == {"failed"}
        library.start()
        settle(library)
        assert {state for state, _ in states(library, [*ids, new])} == {"ready"}


def test_a_busy_stop_ends_it_at_once(settings: Settings) -> None:
    """A process that wants to end queues nothing more."""
    ids = older(settings, {"a.csv": TABLE}, refused=1)
    stopping = threading.Event()
    stopping.set()
    with IngestLibrary(settings) as library:
        yielding = Yielding(library.clock, lambda: True, stopping)
        assert Rereading(library.database, library.clock, yielding, library.worker.wake).step() is None
        assert states(library, ids) == [("failed", "unsupported")]
        library.sources.delete_document(USER, ids[0])
        assert lane(library, EXTRACTORS).step() is None
