"""Where model servers are looked for."""

import ast
from pathlib import Path

from app.settings import ROOT
from app.upstream.discovery import USUAL_PORTS


def default_port(script: Path) -> int:
    """What a script's `--port` is unless told otherwise. It is read, not imported: its packages are another
    environment's."""
    calls = (node for node in ast.walk(ast.parse(script.read_text("utf-8"))) if isinstance(node, ast.Call))
    (port,) = (call for call in calls if call.args and ast.unparse(call.args[0]) == "'--port'")
    return int(ast.literal_eval(next(word.value for word in port.keywords if word.arg == "default")))


def test_the_demo_model_is_looked_for_after_all_others() -> None:
    """Whoever started it finds it with one click; whoever has a better model sees that one first."""
    assert USUAL_PORTS[-1] == default_port(ROOT / "scripts" / "demo_server.py")
    assert len(set(USUAL_PORTS)) == len(USUAL_PORTS)
