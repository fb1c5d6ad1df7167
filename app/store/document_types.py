"""The kinds of documents as people name them, `pdf` or `code`, and what of a row says which it is.

Owns the one table from a type's word to media types and file endings, and the SQL that reads it, so that filters and
the counts beside them can never disagree. Extraction decides the media type (`app.ingest.extract`).
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, String, case, func, literal_column

from app.store.models.library import Document

_OFFICE = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True)
class _Type:
    """Media types that are always of it, and endings (lower case, without the dot) that make plain text of it."""

    mimes: tuple[str, ...]
    endings: str = ""


_SETTINGS = (
    "ini cfg conf service timer socket mount path container network netdev desktop editorconfig gitconfig properties "
    "env"
)
_PROGRAMS = (
    "bash zsh fish ps1 bat c h cc cpp hpp cs go rs java kt swift ts tsx jsx mjs vue svelte php rb pl lua r jl ex erl "
    "hs scala sql tf nix dart j2 jinja jinja2 erb ejs tmpl tpl hbs awk el clj"
)
_TYPES = {
    "markdown": _Type(("text/markdown",)),
    "text": _Type(("text/x-rst",)),
    "html": _Type(("text/html", "application/xhtml+xml")),
    "pdf": _Type(("application/pdf",)),
    "docx": _Type((_OFFICE + "wordprocessingml.document",)),
    "xlsx": _Type((_OFFICE + "spreadsheetml.sheet",)),
    "pptx": _Type((_OFFICE + "presentationml.presentation",)),
    "csv": _Type(("text/csv", "text/tab-separated-values"), "csv tsv tab"),
    "epub": _Type(("application/epub+zip",)),
    "mail": _Type(("message/rfc822",)),
    "config": _Type(("application/json", "application/yaml", "application/toml", "application/xml"), _SETTINGS),
    "code": _Type(("text/x-python", "text/x-shellscript", "text/javascript", "text/css"), _PROGRAMS),
}

TYPE_WORDS = tuple(_TYPES)
"""Every type's word, in the order of a list."""


def type_of() -> ColumnElement[str]:
    """The word of a `Document` row, for SELECT and WHERE; plain text without a telling name is `text`, a file that
    could not be read is empty."""
    mime, path = Document.__table__.c.mime, Document.__table__.c.path
    # What stands behind the last dot: `rtrim` takes off all that is no dot, what it leaves is taken off at the front.
    ending = func.lower(func.replace(path, func.rtrim(path, func.replace(path, ".", "")), ""))
    by_mime = [(mime.in_([_constant(one) for one in kind.mimes]), _constant(word)) for word, kind in _TYPES.items()]
    by_ending = [
        (ending.in_([_constant(one) for one in kind.endings.split()]), _constant(word))
        for word, kind in _TYPES.items()
        if kind.endings
    ]
    plain = case(*by_ending, else_=_constant("text"))
    return case((mime == _constant("text/plain"), plain), *by_mime, else_=_constant(""))


def _constant(word: str) -> ColumnElement[str]:
    """A word of this module as it stands in the SQL: as parameters they would be a hundred of each statement."""
    return literal_column(f"'{word}'", String)
