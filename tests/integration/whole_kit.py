"""A library with a long document, and questions to a scripted model over it: for turns about whole documents."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from fastapi import FastAPI

from app.main import create_app
from app.rag.prompts import parse_passages
from app.settings import Settings
from app.store import documents
from app.store.engine import Database
from app.store.models import Turn
from tests.asgi import Client, in_app
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import IngestLibrary
from tests.integration.turn_kit import rows
from tests.scripted import ScriptedModel, Step
from tests.sse import Frame, text_of

CHAPTER = (
    "## Chapter {n}\n\n" + "The pump in cellar {n} is looked after by hand, once a week, on a Monday morning. " * 12
)
HANDBOOK = "# Storage handbook\n\n" + "\n\n".join(CHAPTER.format(n=n).strip() for n in range(1, 13)) + "\n"
PLAN = "# Backup plan\n\nBackups run at two every night.\n\n## Retention\n\nRetention is thirty days.\n"
NOTES = "# Notes\n\nRetention of mails is a year. The retention of logs is a week.\n"
FILES = {
    "storage-handbook.md": HANDBOOK,
    "plan.md": PLAN,
    "notes.md": NOTES,
    "net.md": "# The network runbook of the house\n\nThe router stands in the hall.\n",
    "a/same.md": "# Same\n\nOne.\n",
    "b/same.md": "# Same\n\nTwo.\n",
}
SUMMARY = "summarise the storage handbook"


def make_library(folder: Path) -> Settings:
    """The settings of a library that was read: a long document, short ones, two of one name, two that can't be read."""
    settings = Settings(_env_file=None, data_dir=folder / "data")
    with IngestLibrary(settings, embedder=WordEmbedder()).start() as made:
        made.add_all({**FILES, "blank.md": "", "broken.pdf": "%PDF-1.4 broken"})
        made.settle()
    return settings


def with_model(settings: Settings, **more: Any) -> Settings:
    """With a model server in the settings."""
    return settings.model_copy(update={"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", **more})


def id_of(settings: Settings, path: str) -> int:
    database = Database(settings.database)
    try:
        found = database.read(lambda session: documents.list_documents(session, 1, documents.DocumentFilters(q=path)))
        return next(row.id for row in found.rows if row.path == path)
    finally:
        database.close()


class Asked:
    """Questions in one chat to a scripted model over the library; `frames` are those of the last one."""

    def __init__(self, settings: Settings, *scripts: list[Step], questions: list[str], **more: Any) -> None:
        self.model = ScriptedModel(*(scripts or (["So [1]."],)))
        self.frames: list[Frame] = []
        self.page = self.receipt = ""
        app: FastAPI = create_app(settings, chat_for=self.model, embedder=WordEmbedder())

        async def test(client: Client) -> None:
            chat: dict[str, Any] = {}
            for question in questions:
                reply = await client.ask(question, client_key=uuid4().hex, **chat, **more)
                self.frames = await reply.all_frames()
                chat = {"chat_id": self.start["chat_id"]}
            self.page = (await (await client.get(f"/ui/turns/{self.start['turn_id']}")).body()).decode()
            self.receipt = (await (await client.get(f"/turns/{self.start['turn_id']}")).body()).decode()

        in_app(app, test)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [frame.data for frame in self.frames if frame.event == event]

    @property
    def start(self) -> dict[str, Any]:
        return self.named("start")[0]

    @property
    def done(self) -> dict[str, Any]:
        assert self.frames[-1].event == "done", self.frames[-1]
        return self.frames[-1].data

    @property
    def text(self) -> str:
        return text_of(self.frames)

    def turn(self, settings: Settings) -> Turn:
        return next(turn for turn in rows(settings, Turn) if turn.id == self.start["turn_id"])

    @property
    def given(self) -> list[str]:
        """The paths of the passages in the last request."""
        return [passage.path for passage in parse_passages(self.model.requests[-1])]
