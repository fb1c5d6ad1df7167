"""Makes answers whose citations are known: right, wrong, invented and missing markers over given passages. Seeded.

What a model does to a sentence it has read, it does here by rule: it turns clauses round, writes numbers another way,
leaves words out, changes number and begins with a phrase of its own.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from app.rag.pieces import Passage
from app.rag.words import stems
from app.render.sentences import sentences

Kind = Literal["right", "wrong", "invented", "missing"]

LEADS = ("", "", "In short, ", "According to the notes, ", "Yes: ", "As far as it is written down, ")
WORDS_OF = {
    "2": "two",
    "3": "three",
    "4": "four",
    "5": "five",
    "7": "seven",
    "10": "ten",
    "12": "twelve",
    "30": "thirty",
}
DIGITS_OF = {word: digits for digits, word in WORDS_OF.items()}


@dataclass(frozen=True)
class Statement:
    """One sentence of an answer. `span` is where its words come from in the document of passage `n`; `cited` is the
    number its marker names, 0 without one."""

    kind: Kind
    n: int
    span: tuple[int, int]
    cited: int


@dataclass(frozen=True)
class Generated:
    """An answer, the passages that were given for it, and what is true of its sentences."""

    answer: str
    passages: tuple[Passage, ...]
    statements: tuple[Statement, ...]

    @property
    def right(self) -> list[Statement]:
        """Sentences with a right marker, in order."""
        return [said for said in self.statements if said.kind == "right"]


def passage(number: int, text: str, start: int = 0, **values: object) -> Passage:
    """A passage of a document of its own."""
    known = Passage(0, number, number, f"notes/{number}.md", f"Note {number}", "", None, text, start, start, 1, 2, 0.7)
    return replace(known, char_end=start + len(text), **values)  # type: ignore[arg-type]


def answers(pool: Sequence[Passage], count: int, seed: int) -> list[Generated]:
    """`count` answers over passages of `pool` that have something to say; every kind of marker is among them."""
    chance = random.Random(seed)
    telling = [found for found in pool if len(_quotable(found.text)) >= 2]
    made: list[Generated] = []
    while len(made) < count:
        given = tuple(replace(found, n=n) for n, found in enumerate(chance.sample(telling, chance.randint(2, 5)), 1))
        if (generated := _answer(given, chance)).statements:
            made.append(generated)
    return made


def _answer(given: tuple[Passage, ...], chance: random.Random) -> Generated:
    parts: list[str] = []
    statements: list[Statement] = []
    used: set[tuple[int, int]] = set()
    for _ in range(chance.randint(1, 5)):
        source = chance.choice(given)
        start, end = chance.choice(_quotable(source.text))
        if (source.n, start) in used:
            continue
        used.add((source.n, start))
        kind: Kind = chance.choices(("right", "wrong", "invented", "missing"), (60, 15, 15, 10))[0]
        others = [other.n for other in given if other.n != source.n]
        cited = {"right": source.n, "wrong": chance.choice(others), "invented": len(given) + chance.randint(1, 80)}.get(
            kind, 0
        )
        parts.append(_marked(paraphrased(source.text[start:end], chance), cited, chance))
        statements.append(Statement(kind, source.n, (source.char_start + start, source.char_start + end), cited))
    glue = chance.choice((" ", "\n\n", "\n- "))
    return Generated(("- " if glue == "\n- " else "") + glue.join(parts), given, tuple(statements))


@cache
def _quotable(passage_text: str) -> list[tuple[int, int]]:
    """Sentences that say something no other sentence of the passage says quite as well."""
    units = [unit for unit in sentences(passage_text) if unit.kind == "prose"]
    words = [stems(passage_text[unit.start : unit.end]) for unit in units]
    found: list[tuple[int, int]] = []
    for at, unit in enumerate(units):
        alike = max((len(words[at] & other) for index, other in enumerate(words) if index != at), default=0)
        text = passage_text[unit.start : unit.end]
        if (
            5 <= len(words[at]) <= 40
            and alike <= 0.75 * len(words[at])
            and not re.search(r"[\[\]`*|<>#\\]|::|\n\n", text)
        ):
            found.append((unit.start, unit.end))
    return found


def paraphrased(sentence: str, chance: random.Random) -> str:
    """The sentence in other words, as far as rules can."""
    body = " ".join(sentence.split()).rstrip(".!?…:")
    for change in (_turned, _renumbered, _thinned, _inflected):
        if chance.random() < 0.6:
            body = change(body, chance)
    lead = chance.choice(LEADS)
    return lead + (body[:1].lower() + body[1:] if lead else body[:1].upper() + body[1:])


def _turned(body: str, chance: random.Random) -> str:
    parts = body.split(", ")
    return ", ".join([*parts[1:], parts[0]]) if len(parts) > 1 else body


def _renumbered(body: str, chance: random.Random) -> str:
    def written(found: re.Match[str]) -> str:
        digits = found.group()
        if len(digits) >= 4:
            return f"{int(digits):,}"
        return WORDS_OF.get(digits, digits)

    body = re.sub(r"(?<![\w.,:/-])(?:[1-9]\d*)(?![\w.,:/-])", written, body)
    return re.sub(r"\b(\d+) ([kMGT]i?B|ms|GB)\b", r"\1\2", body)


def _thinned(body: str, chance: random.Random) -> str:
    words = body.split()
    kept = [word for word in words if any(c.isdigit() for c in word) or chance.random() > 0.4]
    return " ".join(kept if len(kept) >= 4 else words)


def _inflected(body: str, chance: random.Random) -> str:
    def changed(word: str) -> str:
        if not word.isalpha() or len(word) < 5 or chance.random() < 0.6:
            return word
        return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word + "s"

    return " ".join(changed(word) for word in body.split(" "))


def _marked(said: str, cited: int, chance: random.Random) -> str:
    if not cited:
        return f"{said}."
    return chance.choice((f"{said} [{cited}].", f"{said}. [{cited}]", f"{said}[{cited}].", f"{said}.[{cited}]"))
