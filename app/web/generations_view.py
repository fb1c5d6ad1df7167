"""What the settings page says of embedders and generations. Pure.

A key never comes here: `FieldView` holds its last four characters at most. Used by `app.web.generations`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from app.catalog import Catalog
from app.edge.embedder_settings import EmbedderChoice, Tested, report_words
from app.ingest.generations import Build, Kept, Standing
from app.search import choice
from app.store.generations import GenerationRow
from app.store.settings import FieldView

ENDPOINT = "endpoint"
"""The form's choice that is no built-in embedder."""


@dataclass(frozen=True, slots=True)
class Option:
    """A choice of the form."""

    value: str
    words: str
    hint: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class EmbedderForm:
    """The form as it is filled in; `problem` is what is wrong with a value, `models` what the server lists."""

    options: tuple[Option, ...]
    kind: str
    base_url: str
    model: str
    models: tuple[str, ...]
    key_set: bool
    key_hint: str
    key_locked: bool
    locked: bool
    problem: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The box of a test."""

    good: bool
    words: str
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class Serving:
    """The embedder at work: its name, what it can't do, how far it is, and from where its scores are counted (empty
    where that is 0); `warning` when it can't be had or is none."""

    words: str
    limit: str
    done: str
    warning: str = ""
    counted: str = ""


@dataclass(frozen=True, slots=True)
class Differing:
    """A question whose first passage differs."""

    question: str
    old: str
    new: str
    lost: bool


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The comparison: `rows` are what was counted, with the old and the new number; `words` the sentences under it."""

    rows: tuple[tuple[str, str, str], ...]
    words: tuple[str, ...]
    differ: tuple[Differing, ...]


@dataclass(frozen=True, slots=True)
class BuildView:
    """What is being built. `state`: `building`, `paused`, `comparing` or `built`."""

    id: int
    state: str
    title: str
    counts: str
    left: str
    done: int
    total: int
    note: str
    problem: str
    auto: bool
    working: bool
    old: str
    new: str
    compared: ComparisonView | None


@dataclass(frozen=True, slots=True)
class KeptView:
    """A generation that is kept: can one go back to it, is it older than what serves."""

    id: int
    name: str
    words: str
    earlier: bool
    reachable: bool


def serving(standing: Standing, passages: int, waiting: int, catalog: Catalog) -> Serving:
    """The embedder of what serves; `waiting` of `passages` have no vector yet. Before there is one: of what will."""
    row = standing.active
    done = catalog.t("settings.embedded_value", done=passages - waiting, total=passages)
    model, base_url = (
        (row.model, row.base_url) if row is not None else (standing.wanted.model, standing.wanted.base_url)
    )
    warning = catalog.t("generations.unserved") if row is not None and not standing.is_served else ""
    if row is not None and standing.build is None and standing.wanted.model != row.model:
        warning = catalog.t("generations.wanted_waits", name=standing.wanted.model)
    counted = _counted(standing, catalog)
    if base_url is None:
        words, limit = _built_in_words(model, catalog)
        return Serving(words, limit, done, warning, counted)
    if row is not None and standing.floor is None and row.floor_rule is not None:
        warning = warning or catalog.t("generations.tells_nothing_apart")
    words = catalog.t("settings.embedder_endpoint", model=model, host=_host(base_url))
    return Serving(words, catalog.t("settings.embedder_endpoint_limit"), done, warning, counted)


def _counted(standing: Standing, catalog: Catalog) -> str:
    """From where scores are counted, in words; empty where there is nothing to say."""
    row, floor = standing.active, standing.floor
    if floor is not None:
        return catalog.t("generations.counted_from", floor=catalog.number(floor)) if floor else ""
    is_due = row is not None and row.base_url is not None and row.floor_rule is None and standing.is_served
    return catalog.t("generations.not_measured") if is_due else ""


def build_view(build: Build, standing: Standing, user_id: int, catalog: Catalog) -> BuildView:
    """What is being built, for the user who looks."""
    row, counted = build.row, build.counted
    state = _state(build)
    new = name(row, catalog)
    old = name(standing.active, catalog) if standing.active is not None else ""
    rate = catalog.t("generations.rate", rate=f"{build.rate:.1f}") if build.rate and state == "building" else ""
    left = catalog.t("generations.left", time=_about(build.eta_s)) if build.eta_s and state == "building" else ""
    counts = catalog.t("generations.counts", done=counted.done, total=counted.total)
    problem = f"generations.problem_{row.problem}"
    return BuildView(
        id=row.id,
        state=state,
        title=catalog.t(f"generations.title_{state}", name=new),
        counts=" · ".join(part for part in (counts, rate) if part),
        left=left,
        done=counted.done,
        total=max(1, counted.total),
        note=catalog.t("generations.old_serves", name=old) if standing.is_served else catalog.t("generations.unserved"),
        problem=catalog.t(problem if catalog.has(problem) else "generations.problem") if row.problem else "",
        auto=row.auto_switch,
        working=build.is_working,
        old=old,
        new=new,
        compared=_comparison(row.compared, user_id, catalog) if state == "built" and row.compared else None,
    )


def kept_view(kept: Kept, active: GenerationRow | None, catalog: Catalog) -> KeptView:
    """A generation that served before."""
    row = kept.row
    earlier = active is None or row.id < active.id
    called = name(row, catalog)
    words = catalog.t("generations.kept" if earlier else "generations.kept_newer", name=called)
    return KeptView(
        row.id,
        called,
        f"{words} {catalog.t('generations.kept_size', size=catalog.size(kept.bytes))}",
        earlier,
        kept.is_reachable,
    )


def embedder_form(
    fields: Mapping[str, FieldView], typed: EmbedderChoice | None, tested: Tested | None, catalog: Catalog
) -> EmbedderForm:
    """The form: what was typed, else what is saved."""
    address, model, key = fields["embed_base_url"], fields["embed_model"], fields["embed_api_key"]
    saved_kind = ENDPOINT if address.is_set else str(model.value or choice.DEFAULT)
    kind = (typed.built_in or ENDPOINT) if typed is not None else saved_kind
    is_endpoint = kind == ENDPOINT
    return EmbedderForm(
        options=_options(catalog),
        kind=kind,
        base_url=typed.base_url if typed is not None else str(address.value or ""),
        model=typed.model if typed is not None else str(model.value or "") if is_endpoint else "",
        models=tested.models if tested is not None else (),
        key_set=key.is_set,
        key_hint=catalog.t("settings.key_set", last=key.last4) if key.last4 else catalog.t("settings.key_set_hidden"),
        key_locked=key.locked and key.is_set,
        locked=address.locked,
        is_open=typed is not None,
    )


def result(tested: Tested, catalog: Catalog) -> Result:
    """The box of a test."""
    report = tested.report
    return Result(report.ok, report_words(catalog, report), report.suggestion or "")


def name(row: GenerationRow, catalog: Catalog) -> str:
    """How a person calls a generation."""
    if row.base_url is None:
        return row.model
    return catalog.t("generations.name_endpoint", model=row.model, host=_host(row.base_url))


def _state(build: Build) -> str:
    if build.row.paused_at is not None:
        return "paused"
    if build.row.built_at is None:
        return "building"
    return "comparing" if build.row.compared is None else "built"


def _comparison(compared: Mapping[str, Any], user_id: int, catalog: Catalog) -> ComparisonView:
    if compared["problem"]:
        return ComparisonView((), (catalog.t("generations.compare_failed"),), ())
    asked, cited = int(compared["asked"]), int(compared["cited"])
    if not asked:
        return ComparisonView((), (catalog.t("generations.compare_none"),), ())
    rows: list[tuple[str, str, str]] = []
    if cited:
        for depth in cast("Mapping[str, int]", compared["old"]):
            old, new = (
                catalog.t("generations.of", found=compared[side][depth], total=cited) for side in ("old", "new")
            )
            rows.append((catalog.t("generations.compare_found", depth=depth), old, new))
    words = [catalog.t("generations.compare_same", found=int(compared["same_first"]), total=asked)]
    words.append(catalog.t("generations.compare_bias" if cited else "generations.compare_uncited"))
    mine = [entry for entry in cast("Sequence[Mapping[str, Any]]", compared["differ"]) if entry["user"] == user_id]
    nothing = catalog.t("generations.compare_nothing")
    differ = [
        Differing(entry["question"], entry["old"] or nothing, entry["new"] or nothing, bool(entry["lost"]))
        for entry in mine
    ]
    return ComparisonView(tuple(rows), tuple(words), tuple(differ))


def _options(catalog: Catalog) -> tuple[Option, ...]:
    options = [
        Option(
            known.name,
            catalog.t(f"generations.built_in_{known.words}"),
            catalog.t(f"generations.built_in_{known.words}_limit")
            if known.is_installed()
            else catalog.t("generations.install", install=known.install),
            not known.is_installed(),
        )
        for known in choice.BUILT_INS
    ]
    own = Option(ENDPOINT, catalog.t("generations.endpoint"), catalog.t("generations.endpoint_limit"))
    return (*options, own)


def _built_in_words(model: str, catalog: Catalog) -> tuple[str, str]:
    for known in choice.BUILT_INS:
        if known.name == model:
            limit = catalog.t(f"generations.built_in_{known.words}_limit")
            return catalog.t("generations.built_in", model=model, dim=known.dim), limit
    return model, ""


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _about(seconds: int) -> str:
    """38 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
