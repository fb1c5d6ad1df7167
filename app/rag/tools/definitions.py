"""The tools as a request offers them: names, arguments, and a few plain words each. Pure.

The words are short on purpose: they are part of every request of a turn. What arguments mean when they come in another
shape is `app.rag.tools.arguments`'s business; it reads its rules from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.rag.tool_calls import Tools

Kind = Literal["string", "integer", "boolean"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `example` shows a call's arguments; the first of `required` also takes a bare text."""

    name: str
    description: str
    arguments: Mapping[str, Kind]
    example: str
    required: tuple[str, ...] = field(default=())

    def definition(self) -> dict[str, Any]:
        """OpenAI's shape."""
        parameters: dict[str, Any] = {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in self.arguments.items()},
        }
        if self.required:
            parameters["required"] = list(self.required)
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "read",
            "Lines of a document. offset: first line, from 1.",
            {"path": "string", "offset": "integer", "limit": "integer"},
            '{"path": "/library/notes.md", "offset": 1}',
            ("path",),
        ),
        Tool("ls", "Folders and documents. Paths are /collection/path.", {"path": "string"}, '{"path": "/library"}'),
        Tool(
            "grep",
            "Lines that match a regex (RE2), in a document, a folder or all.",
            {
                "pattern": "string",
                "path": "string",
                "glob": "string",
                "ignoreCase": "boolean",
                "context": "integer",
                "limit": "integer",
            },
            '{"pattern": "keep-daily", "glob": "*.md"}',
            ("pattern",),
        ),
        Tool(
            "find",
            "Documents by path or title: a part of it, or a glob like **/*.md.",
            {"pattern": "string", "path": "string"},
            '{"pattern": "backup"}',
            ("pattern",),
        ),
        Tool(
            "search",
            "Passages that fit a question, by words and meaning.",
            {"query": "string", "k": "integer"},
            '{"query": "how long are backups kept"}',
            ("query",),
        ),
    )
}

DEFINITIONS: Tools = tuple(tool.definition() for tool in TOOLS.values())
