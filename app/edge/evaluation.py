"""The evaluation's inputs, shared by its page and its API: what a run may change, and a file of questions.

Owns what a value has to be. Runs are `app.rag.eval_runs`', the format of a file `app.rag.question_lines`'.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.edge.deps import Services
from app.rag.question_lines import as_line, parse_lines
from app.store import documents, eval_questions
from app.store.engine import Session


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


_OrEmpty = BeforeValidator(_empty_is_none)


class Changes(BaseModel):
    """The second settings of a run; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    retrieval_top_k: Annotated[Annotated[int, Field(ge=1, le=100)] | None, _OrEmpty] = None
    retrieval_min_score: Annotated[Annotated[float, Field(ge=0, le=1)] | None, _OrEmpty] = None
    llm_context_tokens: Annotated[Annotated[int, Field(ge=512, le=10_000_000)] | None, _OrEmpty] = None
    words_only: bool = False

    def values(self) -> dict[str, Any]:
        """What is changed, by setting."""
        return self.model_dump(exclude_none=True, exclude={"words_only"}) | (
            {"words_only": True} if self.words_only else {}
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """How many questions a file added, and how many it found saved already and put in their place."""

    added: int
    replaced: int


def import_questions(services: Services, user_id: int, text: str) -> Imported:
    """Saves every question of a file, or none. Blocks.

    Raises:
        InvalidInputError: `eval_file_empty`, `eval_lines_invalid`, `eval_too_many`.
    """
    paths = services.database.read(lambda session: documents.searchable_paths(session, user_id))
    found = parse_lines(text, paths, services.settings.question_max_chars)

    def work(session: Session) -> Imported:
        before = eval_questions.count(session, user_id)
        for new in found:
            eval_questions.put_question(session, user_id, new, services.clock.now())
        added = eval_questions.count(session, user_id) - before
        return Imported(added, len(found) - added)

    return services.database.write(work)


def export_questions(services: Services, user_id: int) -> str:
    """All saved questions, a line each. Blocks."""
    saved = services.database.read(lambda session: eval_questions.questions_of(session, user_id))
    return "".join(f"{as_line(question)}\n" for question in saved)
