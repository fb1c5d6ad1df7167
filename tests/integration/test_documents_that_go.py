"""A document that is removed while an answer rests on it: the turn ends, and each citation leads on."""

from pathlib import Path

import pytest

from app.main import create_app
from app.store.models import Turn
from tests.asgi import Client, in_app
from tests.fake_embedder import WordEmbedder
from tests.integration.turn_kit import rows
from tests.integration.whole_kit import SUMMARY, id_of, make_library, with_model
from tests.scripted import Gate, ScriptedModel
from tests.sse import Frame

SMALL = 2_400
QUESTIONS = {"whole": (SUMMARY, {}), "sections": (SUMMARY, {"llm_context_tokens": SMALL}),
             "passages": ("how often is the pump in cellar 3 looked after?", {})}  # fmt: skip


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_document_that_is_removed_while_it_is_read(tmp_path: Path, kind: str) -> None:
    """The answer ends as if nothing had happened, and its citations show the words it rests on."""
    question, more = QUESTIONS[kind]
    settings = with_model(make_library(tmp_path), **more)
    document_id, gate = id_of(settings, "storage-handbook.md"), Gate()
    model = ScriptedModel(["A pump [1] ", gate, "is looked after [1]."], *[["So it is [1]."]] * 40)
    app = create_app(settings, chat_for=model, embedder=WordEmbedder())
    ended: list[Frame] = []

    async def test(client: Client) -> None:
        reply = await client.ask(question)
        await gate.reached()
        assert (await client.open("DELETE", f"/api/documents/{document_id}")).status == 204
        gate.open()
        frames = await reply.all_frames()
        ended.extend(frames)
        turn = frames[0].data["turn_id"]
        cited = [row for row in frames[-1].data["sources"] if row["cited"] and row["document_id"] == document_id]
        assert cited
        for row in cited:
            page = await client.get(f"/documents/{document_id}?turn={turn}&n={row['n']}")
            text = (await page.body()).decode()
            assert (page.status, "This document was removed" in text) == (404, True)
            assert row["quote"][:20] in text
        assert (await client.get(f"/turns/{turn}")).status == 200
        assert (await client.get(f"/ui/turns/{turn}")).status == 200
        assert (await client.get(f"/documents/{document_id}")).status == 404

    in_app(app, test)
    assert ended[-1].event == "done"
    (turn,) = rows(settings, Turn)
    assert turn.state == "done"
