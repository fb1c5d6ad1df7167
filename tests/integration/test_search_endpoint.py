"""The endpoint embedder against real HTTP servers: what it asks, what it takes, how each failure is named."""

import base64
import struct
from typing import Any

import numpy as np
import pytest

from app.search.builtin import BuiltinEmbedder
from app.search.choice import embedder_from
from app.search.endpoint import BATCH, EndpointEmbedder
from app.search.errors import EmbedError
from app.settings import Settings
from app.upstream.client import Endpoint
from tests.route_server import Answer, Running, routes

EMBED = "POST /v1/embeddings"


def reply(*vectors: Any, index: bool = True) -> Answer:
    rows = [{"embedding": vector, **({"index": number} if index else {})} for number, vector in enumerate(vectors)]
    return Answer({"data": rows})


def embedder_at(server: Running | str) -> EndpointEmbedder:
    url = server if isinstance(server, str) else server.url
    return EndpointEmbedder(Endpoint(f"{url}/v1", api_key="sk-secret-123", model="m", first_token_s=5, connect_s=2))


def test_vectors_are_made_unit_length_and_tell_the_dimension() -> None:
    """Whatever the model's own length."""
    with routes({EMBED: reply([3.0, 4.0])}) as server:
        embedder = embedder_at(server)
        assert (embedder.model, embedder.dim) == ("m", 0)
        vector = embedder.embed_query("question")
        embedder.close()

    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6, 0.8])
    assert embedder.dim == 2
    assert server.asked(EMBED) == [{"model": "m", "input": ["question"], "encoding_format": "float"}]


def test_base64_is_taken_too() -> None:
    """Some servers answer it unasked."""
    packed = base64.b64encode(struct.pack("<2f", 0.0, 2.0)).decode()
    with routes({EMBED: reply(packed)}) as server:
        embedder = embedder_at(server)
        assert embedder.embed_query("q").tolist() == [0.0, 1.0]
        embedder.close()


def test_replies_out_of_order_are_put_in_order() -> None:
    """By their index; without one they count as they come."""
    rows = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    for answer in (Answer({"data": rows}), reply([1.0, 0.0], [0.0, 1.0], index=False)):
        with routes({EMBED: answer}) as server:
            embedder = embedder_at(server)
            assert embedder.embed_passages(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
            embedder.close()


def test_many_passages_go_in_batches() -> None:
    """A server has a limit on one request."""
    with routes({EMBED: reply(*[[1.0, 0.0]] * BATCH)}) as server:
        embedder = embedder_at(server)
        assert embedder.embed_passages(["t"] * (2 * BATCH)).shape == (2 * BATCH, 2)
        assert embedder.embed_passages([]).shape == (0, 2)
        embedder.close()

    assert [len(body["input"]) for body in server.asked(EMBED)] == [BATCH, BATCH]


def test_text_that_no_json_can_carry_is_sent_all_the_same() -> None:
    """A lone surrogate becomes a question mark."""
    with routes({EMBED: reply([1.0])}) as server:
        embedder = embedder_at(server)
        embedder.embed_query("a\ud800b")
        embedder.close()

    assert server.asked(EMBED)[0]["input"] == ["a?b"]


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (Answer({"error": {"message": "bad key"}}, 401), "embed_rejected", False),
        (Answer({"error": {"message": "no"}}, 404), "embed_rejected", False),
        (Answer(b"<!doctype html><p>hello", kind="text/html"), "embed_rejected", False),
        (Answer({"data": []}), "embed_rejected", False),
        (Answer({"nothing": 1}), "embed_rejected", False),
        (Answer([1, 2]), "embed_rejected", False),
        (reply([1.0], [2.0]), "embed_rejected", False),
        (reply([]), "embed_rejected", False),
        (reply([[1.0]]), "embed_rejected", False),
        (reply("not base64!"), "embed_rejected", False),
        (reply(["a"]), "embed_rejected", False),
        (reply(None), "embed_rejected", False),
        (Answer({"error": "busy"}, 429), "embed_unavailable", True),
        (Answer({"error": "down"}, 503), "embed_unavailable", True),
    ],
)
def test_each_failure_has_its_code(answer: Answer, code: str, retryable: bool) -> None:
    """Refused for good, or worth another try; never a vector made of nonsense."""
    with routes({EMBED: answer}) as server:
        embedder = embedder_at(server)
        with pytest.raises(EmbedError) as caught:
            embedder.embed_query("q")
        embedder.close()

    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert "sk-secret" not in str(caught.value)


def test_infinite_numbers_are_refused() -> None:
    """They would make every score nonsense."""
    packed = base64.b64encode(struct.pack("<2f", 1.0, float("nan"))).decode()
    with routes({EMBED: reply(packed)}) as server:
        embedder = embedder_at(server)
        with pytest.raises(EmbedError):
            embedder.embed_query("q")
        embedder.close()


def test_a_server_that_is_down_is_unavailable() -> None:
    """Worth another try later."""
    with routes({}) as server:
        pass
    embedder = embedder_at(server)
    with pytest.raises(EmbedError) as caught:
        embedder.embed_passages(["a"])
    embedder.close()

    assert (caught.value.code, caught.value.retryable) == ("embed_unavailable", True)


def test_the_settings_choose_the_embedder(settings: Settings) -> None:
    """Built-in unless an address is set; an address without a model is refused at the start."""
    assert isinstance(embedder_from(settings), BuiltinEmbedder)
    chosen = Settings(_env_file=None, embed_base_url="http://127.0.0.1:1/v1", embed_model="nomic")
    assert (embedder_from(chosen).model, embedder_from(chosen).dim) == ("nomic", 0)
    with pytest.raises(ValueError, match="EMBED_MODEL"):
        Settings(_env_file=None, embed_base_url="http://127.0.0.1:1/v1")
