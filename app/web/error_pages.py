"""Errors as people see them: a page of its own, or one plain sentence for a fragment that a page asked for.

Handed to `app.edge.errors.ErrorResponses` by `app.main`. Runs in the event loop and after anything may have failed: it
reads neither the database nor the disk, so the page has no side bar and its template is loaded beforehand.
"""

from fastapi import Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.responses import Response

from app.catalog import Catalog
from app.edge.errors import ErrorPage
from app.web.templating import environment, is_htmx

_TITLES = {404: "errors.title_not_found", 405: "errors.title_not_found", 500: "errors.title_internal"}


def error_pages(catalog: Catalog) -> ErrorPage:
    """The function that renders errors outside of `/api`."""
    template = environment(catalog).get_template("errors/page.html")

    def render(request: Request, status: int, code: str, message: str) -> Response:
        if is_htmx(request):
            return PlainTextResponse(message, status)
        title = catalog.t(_TITLES.get(status, "errors.title_refused"))
        retry = request.url.path if status >= 500 and request.method == "GET" else ""
        html = template.render(status=status, code=code, title=title, message=message, retry=retry)
        return HTMLResponse(html, status, headers={"Cache-Control": "no-store"})

    return render
