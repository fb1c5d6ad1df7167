"""The gate: always searches, and says whether there is anything to answer from."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from app.rag.follow_ups import leans, queries_for
from app.rag.gate import NOT_SEARCHED, Gate, RetrievalError, retrieve
from app.rag.prompts import PastTurn
from app.search.hits import Hit, SearchFilters
from app.settings import Settings


def hit(chunk_id: int, score: float) -> Hit:
    return Hit(
        chunk_id=chunk_id,
        document_id=1,
        collection_id=1,
        path="a.md",
        title="A",
        heading="",
        page=None,
        text="text",
        char_start=0,
        char_end=4,
        line_start=1,
        line_end=1,
        score=score,
        fulltext_rank=1,
        vector_rank=None,
    )


class FakeSearch:
    """Gives prepared hits by query and keeps what it was asked."""

    def __init__(self, found: dict[str, list[Hit]] | list[Hit], error: Exception | None = None) -> None:
        self.found = found
        self.error = error
        self.asked: list[tuple[str, int, int, SearchFilters]] = []

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        self.asked.append((query, user_id, k, filters))
        if self.error:
            raise self.error
        return self.found if isinstance(self.found, list) else self.found.get(query, [])


def run(question: str, search: FakeSearch, settings: Settings, history: tuple[PastTurn, ...] = ()) -> Gate:
    return asyncio.run(
        retrieve(
            question,
            searcher=search,
            user_id=7,
            settings=settings.model_copy(update={"retrieval_min_score": 0.5, "retrieval_top_k": 9}),
            filters=SearchFilters(collections=(3,)),
            history=history,
        )
    )


def test_a_score_at_the_threshold_is_grounded_and_keeps_every_hit_in_rank_order(settings: Settings) -> None:
    """The threshold is inclusive; scores don't order, ranks do."""
    hits = [hit(1, 0.2), hit(2, 0.5), hit(3, 0.1)]
    search = FakeSearch(hits)
    gate = run("which port?", search, settings)
    assert (gate.mode, gate.hits, gate.nearest, gate.top_score) == ("grounded", tuple(hits), (), 0.5)
    assert gate.searched == "which port?"
    assert gate.retrieval_ms >= 0
    assert search.asked == [("which port?", 7, 9, SearchFilters(collections=(3,)))]


def test_below_the_threshold_the_turn_is_deflected_with_the_three_nearest(settings: Settings) -> None:
    """What was near is shown with its scores, highest first; the model gets none of it."""
    gate = run("which port?", FakeSearch([hit(1, 0.1), hit(2, 0.49), hit(3, 0.3), hit(4, 0.2)]), settings)
    assert (gate.mode, gate.hits, gate.top_score) == ("deflected", (), 0.49)
    assert [near.chunk_id for near in gate.nearest] == [2, 3, 4]


def test_nothing_found_is_deflected(settings: Settings) -> None:
    """Also with a threshold of 0: there is nothing to answer from."""
    gate = run("which port?", FakeSearch([]), settings)
    assert (gate.mode, gate.nearest, gate.top_score) == ("deflected", (), 0.0)


def test_a_turn_without_documents_has_searched_nothing() -> None:
    """Its gate says so by an empty query."""
    assert (NOT_SEARCHED.mode, NOT_SEARCHED.searched, NOT_SEARCHED.hits) == ("deflected", "", ())


@pytest.mark.parametrize("error", [OperationalError("select", {}, Exception("locked")), OSError("disk"), MemoryError()])
def test_a_failed_search_is_one_error_with_its_own_code(settings: Settings, error: Exception) -> None:
    """Known failures become `retrieval_failed`; anything else is a defect and stays what it is."""
    expected = MemoryError if isinstance(error, MemoryError) else RetrievalError
    with pytest.raises(expected) as caught:
        run("which port?", FakeSearch([], error), settings)
    if isinstance(caught.value, RetrievalError):
        assert caught.value.code == "retrieval_failed"


@pytest.mark.parametrize(
    "question",
    [
        "and how do I approve them on the server?",
        "what happens if I set that to 0?",
        "I forgot it. can I get a new one without deleting the db?",
        "does switching that later break deduplication?",
        "how much of the disk should I give it then?",
        "it works with the file provider but not in my compose file. the hash is the same?",
        "And on Windows?",
        "why?",
        "retention?",
        "und wie lange?",
        "那端口呢",
    ],
)
def test_questions_that_lean_on_the_talk_are_seen(question: str) -> None:
    """They would find nothing, or the wrong thing, by their own words alone."""
    assert leans(question)


@pytest.mark.parametrize(
    "question",
    [
        "what pack size does restic default to?",
        "how long are headscale pre authenticated keys valid with default settings",
        "what is the path of the configuration file that syncthing reads at start on linux and mac",
    ],
)
def test_questions_that_stand_alone_are_left_alone(question: str) -> None:
    """Words of another topic would only lead them astray."""
    assert not leans(question)
    assert queries_for(question, [PastTurn("borg prune options", "a")]) == [question]


def test_a_leaning_question_is_searched_with_the_ones_it_leans_on() -> None:
    """The one before, and the one before that when it leans itself; never further back."""
    history = [PastTurn("ntfy on ios", "a"), PastTurn("prometheus fills my ssd", "a"), PastTurn("ok so size?", "a")]
    question = "how much disk should I give it then?"
    assert queries_for(question, history) == [
        "prometheus fills my ssd ok so size? how much disk should I give it then?"
    ]
    assert queries_for("and on windows?", history[:2]) == ["prometheus fills my ssd and on windows?"]
    assert queries_for(question, ()) == [question]


def test_a_question_that_could_stand_alone_is_tried_alone_too() -> None:
    """Short, or long enough to bring its own words; one that only points back would find other things."""
    history = [PastTurn("borg prune options", "a")]
    assert queries_for("what is ntfy", history) == ["borg prune options what is ntfy", "what is ntfy"]
    long = "which udp port does syncthing discovery use and how do I change it in the settings file"
    assert queries_for(long, history)[-1] == long
    assert len(queries_for("can I get a new one without deleting it?", history)) == 1
    assert not leans("is there a limit on the size of uploaded files")


def test_the_question_alone_is_tried_when_both_together_find_nothing(settings: Settings) -> None:
    """A short question may well be a new topic; `searched` says which query was the better one."""
    found = {"borg prune what is ntfy": [hit(1, 0.3)], "what is ntfy": [hit(2, 0.8)]}
    gate = run("what is ntfy", FakeSearch(found), settings, (PastTurn("borg prune", "a"),))
    assert (gate.mode, gate.searched, gate.hits[0].chunk_id) == ("grounded", "what is ntfy", 2)
    found["what is ntfy"] = [hit(2, 0.2)]
    gate = run("what is ntfy", FakeSearch(found), settings, (PastTurn("borg prune", "a"),))
    assert (gate.mode, gate.searched, gate.top_score) == ("deflected", "borg prune what is ntfy", 0.3)
