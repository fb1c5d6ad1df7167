"""What a receipt keeps beside the numbers of the log line: sizes, and the passages that found no room, with why."""

from app.api.turn_start import facts_of
from app.rag.context import pack
from app.rag.gate import Gate
from app.rag.space import space_of
from app.settings import Settings
from tests.scripted import hit


def gate_of(count: int, chars: int) -> Gate:
    hits = tuple(hit(number, text="word " * (chars // 5)) for number in range(1, count + 1))
    return Gate("grounded", hits, (), 0.8, 12, "how often are backups made")


def test_a_passage_without_room_is_kept_with_its_reason_and_the_sizes_that_decided(settings: Settings) -> None:
    """The estimate lies within the room, the room within the window."""
    small = settings.model_copy(update={"llm_context_tokens": 2048})
    gate = gate_of(9, 900)
    prompt = pack(gate, "How often?", (), space_of(small), documents=0)
    facts = facts_of(gate, prompt, small)
    assert facts["searched"] == "how often are backups made"
    assert facts["window"] == 2048
    assert 0 < facts["estimated_tokens"] <= facts["prompt_room"] < 2048
    assert [row["why"] for row in facts["dropped"]] == ["budget"] * prompt.dropped
    assert prompt.dropped > 0
    assert facts["min_score"] == small.retrieval_min_score


def test_what_a_repack_gave_up_counts_as_dropped(settings: Settings) -> None:
    """The server counted more tokens than Docent: the receipt shows the prompt that was answered."""
    gate = gate_of(4, 300)
    prompt = pack(gate, "How often?", (), space_of(settings), documents=0)
    assert facts_of(gate, prompt, settings)["dropped"] == []
    assert prompt.repack()
    assert [row["chunk_id"] for row in facts_of(gate, prompt, settings)["dropped"]] == [103, 104]
