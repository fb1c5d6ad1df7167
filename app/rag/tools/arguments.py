"""Reads what a model wrote as a call: which tool, with which arguments. Pure.

Small models write calls that are nearly right. What can be understood is: numbers as text, another spelling of a name,
JSON inside a string, a bare text for a tool's one required argument. What can't is answered with what was expected and
an example, so that the next try can succeed. Arguments that a tool doesn't have are passed over and named.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from app.rag.pieces import ToolCallPiece
from app.rag.prompts import rearm
from app.rag.tools.definitions import TOOLS, Kind, Tool
from app.rag.tools.names import one_line

TEXT_CHARS = 1000
"""Of a path, a pattern or a query; more is no longer one."""
_NUMBER_MAX = 1_000_000_000
_NAMED = 5

_OTHER_NAMES = {
    "file": "path",
    "filename": "path",
    "filepath": "path",
    "dir": "path",
    "directory": "path",
    "folder": "path",
    "document": "path",
    "start": "offset",
    "line": "offset",
    "startline": "offset",
    "lines": "limit",
    "maxresults": "limit",
    "regex": "pattern",
    "q": "query",
    "question": "query",
    "text": "query",
    "topk": "k",
    "caseinsensitive": "ignorecase",
    "include": "glob",
}
"""Spelt without `_` and `-`, in lower case; only where the tool has no argument of that very name."""


class ArgumentsError(ValueError):
    """The call can't be run; its text is for the model."""


class UnknownToolError(ArgumentsError):
    """There is no such tool."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that can be run. Texts are stripped and encodable, numbers whole; what was not given is absent."""

    tool: str
    values: Mapping[str, str | int | bool]
    ignored: tuple[str, ...] = ()

    def text(self, name: str, default: str = "") -> str:
        """A text argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, str) else default

    def number(self, name: str) -> int | None:
        """A number argument, None where it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, name: str) -> bool | None:
        """A yes or no, None where it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else None


def parse_call(piece: ToolCallPiece) -> Call:
    """Reads a call.

    Raises:
        UnknownToolError: for a name that is none of the tools'.
        ArgumentsError: for arguments that can't be read, are missing or have the wrong type.
    """
    tool = TOOLS.get(piece.name.rpartition(".")[2].strip().lower())
    if tool is None:
        raise UnknownToolError(f"There is no tool {one_line(piece.name, 40)!r}. The tools are: {', '.join(TOOLS)}.")
    given = _object(piece.arguments, tool)
    names = {_plain(name): name for name in tool.arguments}
    values: dict[str, str | int | bool] = {}
    ignored: list[str] = []
    for key, value in given.items():
        plain = _plain(key)
        name = names.get(plain) or names.get(_OTHER_NAMES.get(plain, ""))
        if name is None:
            ignored.append(one_line(key, 40))
        elif value is not None and (name not in values or key == name):
            values[name] = _value(value, tool.arguments[name], name, tool)
    for name in tool.required:
        if not values.get(name):
            raise ArgumentsError(f"{tool.name} needs {name!r}, for example {tool.example}.")
    return Call(tool.name, values, tuple(ignored[:_NAMED]))


def _object(raw: str, tool: Tool) -> Mapping[str, Any]:
    value: object = _loaded(raw, tool) if raw.strip() else {}
    if isinstance(value, str):
        value = _inner(value, tool)
    value = _only(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ArgumentsError(f"The arguments of {tool.name} have to be a JSON object, for example {tool.example}.")
    return cast("dict[str, Any]", value)


def _loaded(raw: str, tool: Tool) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(
            f"The arguments of {tool.name} are not valid JSON. Write them like this: {tool.example}."
        ) from error


def _inner(text: str, tool: Tool) -> object:
    """JSON that was written as a string of JSON, or a bare text for the one argument a tool needs."""
    if text.lstrip().startswith("{"):
        return _loaded(text, tool)
    return {tool.required[0]: text} if tool.required else {"path": text}


def _only(value: object) -> object:
    """The one item of a list that holds just one."""
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    return items[0] if len(items) == 1 else items


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).lower()


def _value(value: object, kind: Kind, name: str, tool: Tool) -> str | int | bool:
    value = _only(value)
    match kind:
        case "string":
            read = _text(value, name)
        case "integer":
            read = _number(value)
        case "boolean":
            read = _flag(value)
    if read is None:
        expected = {"string": "a text", "integer": "a whole number", "boolean": "true or false"}[kind]
        raise ArgumentsError(f"{name!r} of {tool.name} has to be {expected}, for example {tool.example}.")
    return read


def _text(value: object, name: str) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    # Half a surrogate pair is what a cut "\\ud83d" becomes: neither a database nor a regex engine takes it.
    # And what was made inert in the prompt has to find the text it was copied from.
    text = rearm(value.encode("utf-8", "replace").decode("utf-8")).strip()
    if len(text) > TEXT_CHARS:
        raise ArgumentsError(f"{name!r} has {len(text)} characters; at most {TEXT_CHARS} are possible.")
    return text


def _number(value: object) -> int | None:
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[-+]?\d{1,12}(?:\.0*)?\s*", value, re.ASCII):
            return None
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return max(-_NUMBER_MAX, min(_NUMBER_MAX, int(value)))


def _flag(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.lower().strip()
        )
    return bool(value) if isinstance(value, int) and value in (0, 1) else None
