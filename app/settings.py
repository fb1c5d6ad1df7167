"""The one frozen settings class: environment and `.env`, nothing else.

Owns names, types, defaults and bounds. What an admin changed in the page lies in the settings table and is laid
underneath by `app.store.settings.effective`. Built in `main` and `cli`, passed down; there is no module-level instance.
"""

import os
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent

EMBEDDER = frozenset({"embed_base_url", "embed_api_key", "embed_model"})
"""Chosen together: a key or a name of one embedder says nothing about another."""

EDITABLE = frozenset({"llm_base_url", "llm_api_key", "llm_model", "loop_guard_mode"}) | EMBEDDER
"""Fields the settings page may change; a value from the environment wins over the page and locks the field. Folders
are none of them: each is a row of `collections`, to which WATCH_DIRS adds its own at start."""

SECRET = frozenset({"llm_api_key", "embed_api_key"})
"""Fields whose values never reach a page or a log; the page shows the last four characters."""


class Settings(BaseSettings):
    """Everything an operator can set. `.env.example` and `docs/configuration.md` list the same names (a test checks).

    Raises:
        pydantic.ValidationError: for a value of the wrong type or out of bounds; `cli` prints it as one sentence.
    """

    model_config = SettingsConfigDict(frozen=True, env_file=ROOT / ".env", env_ignore_empty=True, extra="ignore")

    llm_base_url: str | None = None
    llm_api_key: str | None = None
    llm_model: str | None = None
    llm_temperature: float | None = Field(default=None, ge=0, le=2)
    llm_max_tokens: int | None = Field(default=None, ge=1)
    llm_connect_s: float = Field(default=5, gt=0)
    llm_first_token_s: float = Field(default=300, gt=0)
    llm_idle_s: float = Field(default=60, gt=0)
    llm_total_s: float = Field(default=1800, gt=0)
    llm_retry_max: int = Field(default=2, ge=0, le=10)
    llm_context_tokens: int | None = Field(default=None, ge=512)

    embed_base_url: str | None = None
    embed_api_key: str | None = None
    embed_model: str | None = None

    database_url: str | None = None
    data_dir: Path = Path("data")
    watch_dirs: Annotated[tuple[Path, ...], NoDecode] = ()
    watch_rescan_s: float = Field(default=300, ge=1)
    upload_max_mb: int = Field(default=200, ge=1)
    question_max_chars: int = Field(default=32_000, ge=1)
    ocr: Annotated[str, Field(pattern=r"^(off|on|[a-z_]{3,20}(\+[a-z_]{3,20})*)$")] = "off"
    fetch_allow_cidrs: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = ()

    retrieval_top_k: int = Field(default=12, ge=1, le=100)
    retrieval_min_score: float = Field(default=0.35, ge=0, le=1)
    query_rewrite: Literal["rules", "model", "off"] = "rules"

    agent_enabled: bool = True
    agent_max_rounds: int = Field(default=6, ge=1, le=25)

    loop_guard_mode: Literal["off", "note", "refuse"] = "note"
    loop_guard_strikes: int = Field(default=2, ge=0, le=100)
    loop_guard_stagnation: int = Field(default=5, ge=1, le=100)

    turn_detach_grace_s: float | None = Field(default=None, ge=0)
    auth_mode: Literal["none"] | None = None
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    host: str = "127.0.0.1"
    port: int = Field(default=8642, ge=1, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("watch_dirs", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        return tuple(part for part in value.split(os.pathsep) if part) if isinstance(value, str) else value

    @field_validator("allowed_hosts", "trusted_proxies", "fetch_allow_cidrs", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("loop_guard_mode", "query_rewrite", "ocr", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("data_dir")
    @classmethod
    def _from_root(cls, value: Path) -> Path:
        return value if value.is_absolute() else ROOT / value

    @model_validator(mode="after")
    def _embed_model_is_named(self) -> "Settings":
        if self.embed_base_url and not self.embed_model:
            raise ValueError("EMBED_BASE_URL needs EMBED_MODEL: vectors are kept under the model's name")
        return self

    def is_locked(self, field: str) -> bool:
        """Whether the environment (or `.env`) fixes `field`, so that the page may not change it."""
        return field in self.model_fields_set

    @property
    def is_embedder_locked(self) -> bool:
        """Whether the environment chooses the embedder; then nothing that the page stored of one counts."""
        return self.is_locked("embed_base_url") or self.is_locked("embed_model")

    @property
    def database(self) -> str:
        """The SQLAlchemy URL in effect."""
        return self.database_url or f"sqlite:///{self.data_dir / 'docent.db'}"

    @property
    def files_dir(self) -> Path:
        """Where uploaded files lie, named by their sha256: `files/ab/abcdef…`."""
        return self.data_dir / "files"
