"""What the settings page says: the model's form, a test's result, servers that were found, facts. Pure.

A key never comes here: `FieldView` holds its last four characters at most. Used by `app.web.settings`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.catalog import Catalog
from app.store.settings import FieldView
from app.upstream.discovery import FoundServer
from app.upstream.probe import ConnectionReport


@dataclass(frozen=True, slots=True)
class ModelForm:
    """The form as it is filled in. `models` is empty where the server's list is not known: then the name is typed.

    `saved` says whether an endpoint is stored, so that it can be removed; `problem` is what is wrong with a value.
    """

    base_url: str
    base_url_locked: bool
    model: str
    model_locked: bool
    models: tuple[str, ...]
    models_hint: str
    key_set: bool
    key_hint: str
    key_locked: bool
    saved: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its value; `mono` for what machines say."""

    label: str
    value: str
    mono: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionBox:
    """The box under the address. `suggestion` is an address to try instead, empty where there is none."""

    good: bool
    words: str
    advice: str
    suggestion: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A model server that was found on this machine."""

    base_url: str
    facts: str


def model_form(
    fields: Mapping[str, FieldView],
    typed: Mapping[str, str | None],
    catalog: Catalog,
    *,
    models: Sequence[str] = (),
    problem: str = "",
) -> ModelForm:
    """The form: what was typed lies over what is saved, a locked field keeps the environment's value."""
    address, model, key = fields["llm_base_url"], fields["llm_model"], fields["llm_api_key"]
    chosen = _shown(model, typed.get("llm_model"))
    # A model that the server does not list stays a choice: some servers list what is loaded only.
    names = (chosen, *models) if models and chosen and chosen not in models else tuple(models)
    return ModelForm(
        base_url=_shown(address, typed.get("llm_base_url")),
        base_url_locked=address.locked and address.is_set,
        model=chosen,
        model_locked=model.locked and model.is_set,
        models=names,
        models_hint=catalog.t("settings.model_hint_count", n=len(models)),
        key_set=key.is_set,
        key_hint=catalog.t("settings.key_set", last=key.last4) if key.last4 else catalog.t("settings.key_set_hidden"),
        key_locked=key.locked and key.is_set,
        saved=address.is_set,
        problem=problem,
    )


def connection_box(
    report: ConnectionReport, sentence: str, catalog: Catalog, set_window: int | None = None
) -> ConnectionBox:
    """The box of a test; `sentence` is the failure's, empty for a success, `set_window` is LLM_CONTEXT_TOKENS."""
    facts: list[tuple[str, str]] = []
    if report.kind:
        facts.append(("server", f"{report.kind} {report.version}".strip()))
    if window := _window_words(report, set_window, catalog):
        facts.append(("window", window))
    if report.streaming is not None:
        facts.append(("streaming", catalog.t("settings.yes" if report.streaming else "settings.no")))
    if report.models:
        facts.append(("models", catalog.number(len(report.models))))
    words, advice = sentence, ""
    if report.ok:
        time = catalog.seconds(round((report.answer_s or 0.0) * 1000))
        words = catalog.t("settings.answered_in", model=report.model or "", time=time)
    elif report.failure is not None:
        key = f"settings.try_{report.failure.reason}"
        advice = catalog.t(key) if catalog.has(key) else ""
    return ConnectionBox(
        good=report.ok,
        words=words,
        advice=advice,
        suggestion=report.suggestion or "",
        facts=tuple(Fact(catalog.t(f"settings.fact_{name}"), value) for name, value in facts),
    )


def _window_words(report: ConnectionReport, set_window: int | None, catalog: Catalog) -> str:
    """How large the window is and who says so; that the server has less than is set."""
    said = catalog.t("settings.fact_window_value", n=report.window) if report.window else ""
    if not said and report.most:
        said = catalog.t("settings.fact_window_most", n=report.most)
    if set_window is None or not report.ok:
        return said
    own = catalog.t("settings.fact_window_set", n=set_window)
    if report.window is None or report.window >= set_window:
        return own
    return f"{own} {catalog.t('settings.fact_window_less', said=report.window)}"


def server(found: FoundServer, catalog: Catalog) -> Server:
    """A found server with what is known of it."""
    kind = f"{found.kind} {found.version}".strip()
    number = (
        catalog.t("settings.found_models", n=found.models) if found.models else catalog.t("settings.found_no_models")
    )
    return Server(found.base_url, " · ".join(word for word in (kind, number) if word))


def _shown(field: FieldView, typed: str | None) -> str:
    if typed is not None and not field.locked:
        return typed
    return str(field.value or "")
