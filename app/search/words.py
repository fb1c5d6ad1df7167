"""Text to search terms, with the very tokenizer of the full-text index.

Owns which words of a question count and which of them stand in a passage. It asks SQLite itself (a small private
in-memory index per thread), so a term here is a term there, stemming and accents included. Knows no document.
"""

import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from app.search.stopwords import STOP_WORDS

_WORD, _DIGIT = re.compile(r"[^\W_]+"), re.compile(r"\d")
_JOINED = re.compile(r"[^\W\d_]\w*[-._:/]\w|\d\w*[-._:/]\w*[^\W\d_]")
_FOLD = "unicode61 remove_diacritics 2"
_SCHEMA = f"""
CREATE VIRTUAL TABLE stemmed USING fts5(text, content='', tokenize='porter {_FOLD}');
CREATE VIRTUAL TABLE held USING fts5(text, content='', columnsize=0, detail=none, tokenize='porter {_FOLD}');
CREATE VIRTUAL TABLE plain USING fts5(text, content='', tokenize='{_FOLD}');
CREATE VIRTUAL TABLE stemmed_terms USING fts5vocab('stemmed', 'instance');
CREATE VIRTUAL TABLE held_terms USING fts5vocab('held', 'instance');
CREATE VIRTUAL TABLE plain_terms USING fts5vocab('plain', 'instance');
"""
"""`held` knows which text holds which term, not where: half the work."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question: `word` as folded by the tokenizer (letters, digits and marks only, so it is safe between
    double quotes), `stem` as the index knows it. `is_name`: it stood in something joined of letters and
    digits (`nas-03`, `E-4012`, `v2.14`), the name of one host, error or version out of many."""

    word: str
    stem: str
    is_name: bool = False


class Words:
    """The tokenizer. Thread-safe: each thread has an index of its own, empty between calls."""

    def __init__(self) -> None:
        self._local = threading.local()

    def question_terms(self, question: str) -> list[Term]:
        """The distinct terms of a question in reading order, without stop words unless it has nothing else."""
        with _Scratch(self._connection()) as scratch:
            scratch.execute("INSERT INTO plain(rowid, text) VALUES (1, ?)", (clean(question),))
            scratch.execute("INSERT INTO stemmed(rowid, text) VALUES (1, ?)", (clean(question),))
            words = scratch.execute("SELECT offset, term FROM plain_terms").fetchall()
            stems = dict(scratch.execute("SELECT offset, term FROM stemmed_terms").fetchall())
        named = _words_of_names(question)
        ordered = [Term(word, stems[offset], word in named) for offset, word in sorted(words)]
        telling = [term for term in ordered if term.word not in STOP_WORDS]
        distinct: dict[str, Term] = {}
        for term in telling or ordered:
            distinct.setdefault(term.stem, term)
        return list(distinct.values())

    def standing(self, stems: Sequence[str], passages: Sequence[str]) -> list[set[str]]:
        """For each passage, those of `stems` that stand in it."""
        found: dict[int, set[str]] = {row: set() for row in range(len(passages))}
        with _Scratch(self._connection()) as scratch:
            scratch.executemany(
                "INSERT INTO held(rowid, text) VALUES (?, ?)",
                ((row, clean(passage)) for row, passage in enumerate(passages)),
            )
            for stem in dict.fromkeys(stems):
                for row in scratch.execute("SELECT doc FROM held_terms WHERE term = ?", (stem,)):
                    found[int(row[0])].add(stem)
        return list(found.values())

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            connection.executescript(_SCHEMA)
            self._local.connection = connection
        return self._local.connection


class _Scratch:
    """A transaction that is always rolled back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, *_exception: object) -> None:
        self._connection.execute("ROLLBACK")


def _words_of_names(question: str) -> set[str]:
    """The words of what joins letters and digits by a dash, a dot or the like."""
    names = [token for token in question.casefold().split() if _JOINED.search(token) and _DIGIT.search(token)]
    return {word for name in names for word in _WORD.findall(name)}


def clean(text: str) -> str:
    """`text` as SQLite takes it: lone surrogates become question marks, NUL a blank."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
