"""What a person decides about generations: which embedder, pause, cancel, switch, go back, keep.

Owns keeping the settings table and the generations together: what the table chooses is what is built or, with nothing
being built, what serves. Each decision is one transaction. The work itself is `app.ingest.building`'s, in the worker of
this process or of another. Called by the settings page; blocking.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.clock import Clock
from app.errors import ConflictError
from app.ingest.building import Pace
from app.ingest.chunking import CHUNKER_VERSION
from app.logs import kv
from app.search.choice import Spec, spec_from
from app.search.embeddings import floor_of
from app.search.generations import Embedders
from app.settings import Settings
from app.store import chunks, generation_changes, generations, vectors
from app.store import settings as stored
from app.store.engine import Database, Session
from app.store.generations import Counted, GenerationRow, Recipe

Begun = Literal["same", "building", "active"]

_log = logging.getLogger("app.ingest")


@dataclass(frozen=True, slots=True)
class Build:
    """What is being built: how many of the texts are embedded, how many a second, seconds left; None: can't tell."""

    row: GenerationRow
    counted: Counted
    rate: float | None
    eta_s: int | None

    @property
    def is_working(self) -> bool:
        """Whether something happens by itself just now."""
        return self.row.paused_at is None and (self.row.compared is None or self.row.auto_switch)


@dataclass(frozen=True, slots=True)
class Kept:
    """A generation that served before: what its vectors take on the disk, and whether one can go back to it."""

    row: GenerationRow
    bytes: int
    is_reachable: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How things are. `is_served`: the embedder of what is active can be had; `wanted` is what the settings choose;
    `floor`: the cosine that scores are counted from, None while it is not measured."""

    wanted: Spec
    active: GenerationRow | None
    is_served: bool
    build: Build | None
    kept: tuple[Kept, ...]
    floor: float | None = None


class Generations:
    """The decisions.

    Args:
        settings: The environment's.
        wake: Tells the worker of this process to look at once.
        pace: How fast that worker builds.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        embedders: Embedders,
        clock: Clock,
        wake: Callable[[], None],
        pace: Pace,
    ) -> None:
        self._database = database
        self._settings = settings
        self._embedders = embedders
        self._clock = clock
        self._wake = wake
        self._pace = pace

    def standing(self) -> Standing:
        """How things are now."""
        settings, rows = self._database.read(
            lambda session: (stored.effective(session, self._settings), generations.list_generations(session))
        )
        by_state = {state: [row for row in rows if row.state == state] for state in ("active", "building", "retired")}
        active = next(iter(by_state["active"]), None)
        building = next(iter(by_state["building"]), None)
        embedder = self._embedders.of(active.as_active()) if active is not None else None
        named = floor_of(embedder) if embedder is not None else None
        return Standing(
            spec_from(settings),
            active,
            embedder is not None,
            self._build(building) if building is not None else None,
            tuple(self._kept(row) for row in by_state["retired"]),
            active.floor if named is None and active is not None else named,
        )

    def choose(self, user_id: int, spec: Spec, dim: int) -> Begun:
        """Has everything embedded by another embedder, of whose vectors `dim` is the length. It takes over at once
        where nothing is embedded yet, or nothing serves.

        Raises:
            ConflictError: `embedder_locked` where the environment chooses.
        """
        self._check_unlocked()
        key = None if self._settings.is_locked("embed_api_key") else spec.api_key
        recipe = Recipe(spec.model, dim, spec.base_url, key)

        def work(session: Session) -> tuple[Begun, int]:
            now, chunker = self._clock.now(), str(CHUNKER_VERSION)
            self._put(session, user_id, recipe)
            active = vectors.active_generation(session)
            serves = active is not None and self._embedders.of(active) is not None
            if active is None or not serves or not chunks.has_any(session):
                return "active", generation_changes.begin_at_once(session, recipe, chunker, now).id
            row = generation_changes.begin(session, recipe, chunker, now)
            if row.state == "active":
                return "same", row.id
            generation_changes.set_paused(session, None)
            return "building", row.id

        begun, number = self._database.write(work)
        if begun != "same":
            _log.info(kv("generation_build", generation=number, model=spec.model, dim=dim, by=f"user:{user_id}"))
        self._wake()
        return begun

    def pause(self, *, paused: bool) -> None:
        """Pauses the build, or lets it go on.

        Raises:
            ConflictError: `generation_gone` when nothing is being built.
        """
        at = self._clock.now() if paused else None
        self._database.write(lambda session: generation_changes.set_paused(session, at))
        self._wake()

    def set_auto_switch(self, *, auto: bool) -> None:
        """Whether it takes over by itself once it is built.

        Raises:
            ConflictError: as above.
        """
        self._database.write(lambda session: generation_changes.set_auto_switch(session, auto))
        self._wake()

    def cancel(self, user_id: int) -> None:
        """Gives the build up; the settings name again what serves.

        Raises:
            ConflictError: `embedder_locked` where the environment asks for it: it would begin again.
        """
        self._check_unlocked()

        def work(session: Session) -> None:
            generation_changes.cancel(session)
            active = generations.get(session, "active")
            if active is not None:
                self._put(session, user_id, Recipe(active.model, active.dim, active.base_url, active.api_key))

        self._database.write(work)
        _log.info(kv("generation_cancelled", user=user_id))
        self._wake()

    def switch(self, user_id: int, generation_id: int) -> None:
        """Makes what is built, or was kept, the one that serves, from the next question on.

        Raises:
            ConflictError: `generation_gone`, `generation_not_built`, `generation_unreachable`; `embedder_locked` for
                going back where the environment chooses.
        """

        def work(session: Session) -> GenerationRow:
            row = next((row for row in generations.list_generations(session) if row.id == generation_id), None)
            if row is None:
                raise ConflictError("generation_gone")
            if row.state == "retired":
                self._check_unlocked()
                if self._embedders.of(row.as_active()) is None:
                    raise ConflictError("generation_unreachable")
                generation_changes.cancel(session)
            generation_changes.switch(session, row.id, self._clock.now())
            if not self._settings.is_embedder_locked:
                self._put(session, user_id, Recipe(row.model, row.dim, row.base_url, row.api_key))
            return row

        row = self._database.write(work)
        _log.info(kv("generation_switched", generation=row.id, model=row.model, by=f"user:{user_id}"))
        self._wake()

    def keep_new(self, user_id: int) -> None:
        """Gives up every generation that served before."""
        gone = self._database.write(generation_changes.keep_only_active)
        _log.info(kv("generation_confirmed", user=user_id, dropped=gone))
        self._wake()

    def compare_again(self) -> None:
        """Compares what is built on the questions there are by now."""

        def work(session: Session) -> None:
            row = generations.get(session, "building")
            if row is None:
                raise ConflictError("generation_gone")
            generation_changes.note_compared(session, row.id, None)

        self._database.write(work)
        self._wake()

    def _build(self, row: GenerationRow) -> Build:
        counted = self._database.read(lambda session: generations.count(session, row.id))
        rate, left = self._pace.rate(), counted.total - counted.done
        return Build(row, counted, rate, round(left / rate) if rate and left else None)

    def _kept(self, row: GenerationRow) -> Kept:
        size = self._database.read(lambda session: generations.size_bytes(session, row.id))
        return Kept(row, size, self._embedders.of(row.as_active()) is not None)

    def _put(self, session: Session, user_id: int, recipe: Recipe) -> None:
        """What the settings table chooses from now on."""
        is_default = recipe.base_url is None and recipe.model == self._embedders.default_model
        values: dict[str, object] = {
            "embed_base_url": recipe.base_url,
            "embed_model": None if is_default else recipe.model,
        }
        if not self._settings.is_locked("embed_api_key"):
            values["embed_api_key"] = recipe.api_key
        stored.put(session, values, user_id, self._clock.now())

    def _check_unlocked(self) -> None:
        if self._settings.is_embedder_locked:
            raise ConflictError("embedder_locked", setting="EMBED_MODEL")
