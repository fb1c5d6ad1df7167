"""Templates: the one Jinja2 environment, its filters, and the two ways to answer with HTML.

A page route calls `render_page`, an htmx fragment `render_fragment`. Escaping is always on; HTML that is already safe
comes from `app.render` as `Markup`. Every string is the catalog's: `t("area.key", n=3)`. Owns no data but the side
bar's (`app.web.side`).
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.catalog import Catalog
from app.edge.deps import Services
from app.render.names import plain_name
from app.web.side import side_bar
from app.web.static import static_url

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "frontend" / "templates"


def render_page(
    services: Services, request: Request, user_id: int, template: str, *, status: int = 200, **context: Any
) -> HTMLResponse:
    """A whole page in `base.html`'s frame. Reads the database; for plain `def` routes.

    `context` may hold `place` (which row of the side bar is current: chat, library, questions, settings) and
    `chat_id` (the current chat).
    """
    side = services.database.read(lambda session: side_bar(session, services.settings, user_id))
    return _respond(services, template, status, side=side, path=request.url.path, **context)


def is_htmx(request: Request) -> bool:
    """Whether a fragment is wanted rather than a page."""
    return request.headers.get("hx-request") == "true"


def render_fragment(services: Services, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A piece of a page for htmx or a script; the same partial that the page includes."""
    return _respond(services, template, status, **context)


def render_text(services: Services, template: str, **context: Any) -> str:
    """The HTML of a partial, for a frame or a test."""
    return environment(services.catalog).get_template(template).render(now=services.clock.now(), **context)


@cache
def environment(catalog: Catalog) -> Environment:
    """The environment of a language's catalog."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    names: dict[str, Any] = cast("dict[str, Any]", env.globals)  # pyright: ignore[reportUnknownMemberType]
    names |= {
        "t": catalog.t,
        "has_text": catalog.has,
        "static": static_url,
        "day_of": catalog.day,
        "when": catalog.when,
    }
    filters: dict[str, Callable[..., str]] = {
        "number": catalog.number,
        "size": catalog.size,
        "seconds": catalog.seconds,
        "score": _score,
        "time": catalog.time_of_day,
        "iso": _iso,
        "cut_middle": cut_middle,
        "name": plain_name,
    }
    cast("dict[str, Any]", env.filters).update(filters)  # pyright: ignore[reportUnknownMemberType]
    return env


def cut_middle(text: str, limit: int = 60) -> str:
    """`text`, or its two ends around "…" where it is longer than `limit`: a long path keeps its file name."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def _score(value: float) -> str:
    return f"{value:.2f}"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _respond(services: Services, template: str, status: int, **context: Any) -> HTMLResponse:
    html = render_text(services, template, **context)
    return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})
