"""The settings class, `.env.example` and docs/configuration.md name the same settings with the same defaults."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import EDITABLE, ROOT, SECRET, Settings

NAMES = {name.upper() for name in Settings.model_fields}


def test_the_example_file_lists_every_setting_once_and_commented_out() -> None:
    """Copying `.env.example` to `.env` must lock nothing."""
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    settings = [line for line in lines if re.match(r"#?[A-Z_]+=", line)]

    assert all(line.startswith("#") for line in settings)
    assert sorted(line[1:].split("=")[0] for line in settings) == sorted(NAMES)


def test_the_configuration_page_lists_every_setting_with_its_default() -> None:
    """What the page prints as a default is the class's default."""
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| `?([^|`]+?)`? \|", page, re.MULTILINE))

    assert set(rows) == NAMES
    for name, shown in rows.items():
        default = Settings.model_fields[name.lower()].default
        if isinstance(default, int | float | str) and not isinstance(default, bool):
            assert shown == str(default), name


def test_the_example_file_shows_the_defaults() -> None:
    """Numbers in `.env.example` are the class's defaults."""
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    for name, shown in re.findall(r"^#([A-Z_]+)=(\d+(?:\.\d+)?)$", text, re.MULTILINE):
        assert float(shown) == float(Settings.model_fields[name.lower()].default), name


def test_the_readme_shows_the_defaults() -> None:
    """Numbers in README's short table are the class's defaults; a window that is not set counts as 8,192."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+(?:\.\d+)?) \|", text, re.MULTILINE))

    assert {"UPLOAD_MAX_MB", "RETRIEVAL_MIN_SCORE"} <= set(rows)
    for name, shown in rows.items():
        default = Settings.model_fields[name.lower()].default
        assert float(shown) == (8192 if name == "LLM_CONTEXT_TOKENS" else default), name


def test_editable_and_secret_fields_exist() -> None:
    """A renamed field may not leave the page behind."""
    assert set(Settings.model_fields) >= EDITABLE | SECRET


def test_the_configuration_page_names_what_the_settings_page_can_change() -> None:
    """ "On the settings page" stands in the rows of the editable fields and in no other."""
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([A-Z_]+)` \|.*\. On the settings page", page, re.MULTILINE)

    assert {name.lower() for name in named} == EDITABLE


def test_environment_values_lock_and_empty_ones_do_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty variable counts as not set."""
    monkeypatch.setenv("LLM_MODEL", "qwen3:14b")
    monkeypatch.setenv("LLM_API_KEY", "")
    monkeypatch.setenv("WATCH_DIRS", f"{tmp_path}:/srv/notes")
    monkeypatch.setenv("ALLOWED_HOSTS", "docent.lan, nas.lan")
    settings = Settings(_env_file=None)

    assert settings.is_locked("llm_model")
    assert not settings.is_locked("llm_api_key")
    assert settings.watch_dirs == (tmp_path, Path("/srv/notes"))
    assert settings.allowed_hosts == ("docent.lan", "nas.lan")


@pytest.mark.parametrize(("name", "value"), [("PORT", "0"), ("LLM_TEMPERATURE", "3"), ("LOG_LEVEL", "loud")])
def test_a_value_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A typing error must not become a silent default."""
    monkeypatch.setenv(name, value)

    with pytest.raises(ValidationError):
        Settings(_env_file=None)


def test_relative_data_folders_start_at_the_checkout() -> None:
    """Where the command is run from must not decide where data lies."""
    settings = Settings(_env_file=None, data_dir=Path("elsewhere"))

    assert settings.data_dir == ROOT / "elsewhere"
    assert settings.database == f"sqlite:///{ROOT / 'elsewhere' / 'docent.db'}"
    assert settings.files_dir == ROOT / "elsewhere" / "files"
