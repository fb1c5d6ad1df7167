"""How one generation follows another: built beside the one that serves, switched to, gone back to, given up.

Owns the transitions of the `generations` table: building → active (the switch, which retires the one before), retired →
active (going back), building or retired → dropping, whose vectors go bit by bit. A transition and what follows from it
for documents and jobs are one transaction. Which generation is wanted, and when to switch, is `app.ingest`'s.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, select, update
from sqlalchemy.orm import Session

from app.errors import ConflictError
from app.store import intake, jobs, vectors
from app.store.generations import GenerationRow, Recipe, State, row_of
from app.store.models.library import Chunk, Job
from app.store.models.vectors import Generation, Vector

AT_ONCE = 500
"""Documents in one statement."""


def begin(session: Session, recipe: Recipe, chunker: str, now: datetime, *, auto: bool = False) -> GenerationRow:
    """Has the vectors of `recipe` built beside those that serve; what is building for another one is dropped.

    The embedder that serves already only gets its address and key noted. One that served before has its vectors still.
    Returns the generation, `building` or `active`.
    """
    active = _find(session, recipe, "active")
    if active is not None:
        _note_place(active, recipe)
        cancel(session)
        return row_of(active)
    building = _find(session, recipe, "building")
    if building is None:
        cancel(session)
        building = _find(session, recipe, "retired") or _new(session, recipe, chunker, now)
        building.state, building.retired_at, building.switched_at, building.auto_switch = "building", None, None, auto
        building.paused_at = None
        building.built_at = building.compared = None
    building.problem = None
    building.chunker = chunker
    _note_place(building, recipe)
    session.flush()
    return row_of(building)


def begin_at_once(session: Session, recipe: Recipe, chunker: str, now: datetime) -> vectors.ActiveGeneration:
    """Makes the generation of `recipe` the active one before it is built: nothing can serve meanwhile, or there is
    nothing to embed. What lacks its vectors is found by words until it has them."""
    generation = vectors.ensure_generation(session, recipe.model, recipe.dim, chunker, now)
    row = session.get_one(Generation, generation.id)
    _note_place(row, recipe)
    cancel(session)
    _drop(session, and_(Generation.state == "retired", ~exists().where(Vector.generation_id == Generation.id)))
    if generation.fresh:
        _queue_lacking(session, generation.id, now)
    return generation


def recut(session: Session, chunker: str, now: datetime) -> bool:
    """Has every document read again where what serves was cut by another chunker; says whether it was.

    Vectors belong to texts: those of unchanged passages go on serving, what is cut differently is embedded like an
    edit."""
    before = session.scalar(select(Generation.chunker).where(Generation.state == "active"))
    if before in (None, chunker):
        return False
    session.execute(update(Generation).where(Generation.state != "dropping").values(chunker=chunker))
    due = intake.send_back_all(session)
    jobs.enqueue(session, [jobs.ingest_job(*document) for document in due], now)
    return True


def cancel(session: Session) -> None:
    """Gives up what is building."""
    _drop(session, Generation.state == "building")


def switch(session: Session, generation_id: int, now: datetime) -> None:
    """Makes a built or kept generation the one that serves, and retires the one that did.

    Raises:
        ConflictError: `generation_gone` when it is neither, `generation_not_built` while texts are missing.
    """
    row = session.get(Generation, generation_id)
    if row is None or row.state not in ("building", "retired"):
        raise ConflictError("generation_gone")
    if row.state == "building" and row.built_at is None:
        raise ConflictError("generation_not_built")
    session.execute(update(Generation).where(Generation.state == "active").values(state="retired", retired_at=now))
    row.state, row.switched_at, row.retired_at = "active", now, None
    row.auto_switch, row.paused_at, row.problem = False, None, None
    session.flush()
    _queue_lacking(session, row.id, now)


def keep_only_active(session: Session) -> int:
    """Gives up every retired generation and returns how many; what is building goes on."""
    return _drop(session, Generation.state == "retired")


def set_paused(session: Session, at: datetime | None) -> None:
    """Pauses what is building, or (None) lets it go on."""
    _building(session).paused_at = at


def set_auto_switch(session: Session, auto: bool) -> GenerationRow:
    """Whether what is building becomes the active one by itself."""
    row = _building(session)
    row.auto_switch = auto
    session.flush()
    return row_of(row)


def note_problem(session: Session, generation_id: int, code: str | None) -> None:
    """Why a build waits; None once it goes on."""
    where = (Generation.id == generation_id, Generation.state == "building")
    session.execute(update(Generation).where(*where).values(problem=code))


def note_built(session: Session, generation_id: int, now: datetime) -> None:
    """Every text has its vector."""
    where = (Generation.id == generation_id, Generation.state == "building", Generation.built_at.is_(None))
    session.execute(update(Generation).where(*where).values(built_at=now, problem=None))


def note_compared(session: Session, generation_id: int, compared: dict[str, Any] | None) -> None:
    """What the comparison came to; None has it made again."""
    session.execute(update(Generation).where(Generation.id == generation_id).values(compared=compared))


def note_floor(session: Session, generation_id: int, floor: float | None, rule: str) -> None:
    """The cosine that counts as 0 with a generation's embedder, and the rule that found it."""
    session.execute(update(Generation).where(Generation.id == generation_id).values(floor=floor, floor_rule=rule))


def add_built(session: Session, generation_id: int, shas: Sequence[str], matrix: vectors.FloatMatrix) -> bool:
    """Stores a batch of what is building, of the texts that are still there. False when it was given up meanwhile."""
    if session.scalar(select(Generation.state).where(Generation.id == generation_id)) != "building":
        return False
    used = set(session.scalars(select(Chunk.sha256).where(Chunk.sha256.in_(shas)).distinct()))
    keep = [place for place, sha in enumerate(shas) if sha in used]
    vectors.add_vectors(session, generation_id, [shas[place] for place in keep], matrix[keep])
    return True


def drop_some(session: Session, limit: int) -> bool:
    """Deletes at most `limit` vectors of what was given up, and its row after the last; False when nothing is left."""
    row_id = session.scalar(select(Generation.id).where(Generation.state == "dropping").limit(1))
    if row_id is None:
        return False
    some = list(session.scalars(select(Vector.id).where(Vector.generation_id == row_id).limit(limit)))
    session.execute(delete(Vector).where(Vector.id.in_(some)))
    if len(some) < limit:
        session.execute(delete(Generation).where(Generation.id == row_id))
    return True


def _queue_lacking(session: Session, generation_id: int, now: datetime) -> None:
    """Nothing may be called ready whose vectors are another generation's; what waited is looked at again at once."""
    ids = vectors.unembedded_documents(session, generation_id)
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        intake.mark_embedding(session, some)
        jobs.enqueue(session, [jobs.embed_job(number) for number in some], now)
    session.execute(update(Job).where(Job.kind == "embed", Job.state == "queued").values(not_before=None))


def _drop(session: Session, condition: ColumnElement[bool]) -> int:
    """The key goes at once, the vectors later."""
    query = select(Generation).where(condition)
    rows = session.scalars(query).all()
    for row in rows:
        row.state, row.api_key = "dropping", None
    session.flush()
    return len(rows)


def _building(session: Session) -> Generation:
    row = session.scalars(select(Generation).where(Generation.state == "building")).first()
    if row is None:
        raise ConflictError("generation_gone")
    return row


def _find(session: Session, recipe: Recipe, state: State) -> Generation | None:
    known = (Generation.model == recipe.model, Generation.dim == recipe.dim, Generation.state == state)
    return session.scalars(select(Generation).where(*known).order_by(Generation.id.desc())).first()


def _new(session: Session, recipe: Recipe, chunker: str, now: datetime) -> Generation:
    row = Generation(model=recipe.model, dim=recipe.dim, normalised=True, chunker=chunker, created_at=now)
    session.add(row)
    return row


def _note_place(row: Generation, recipe: Recipe) -> None:
    if row.base_url != recipe.base_url:
        row.floor_rule = None  # another server may answer otherwise: measured again, what was found serves until then
    row.base_url, row.api_key = recipe.base_url, recipe.api_key
