"""The web page and the documentation pages, from local files only."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from app.api.middleware.access import needs_key

PAGE_DIR = Path(__file__).parent / "static" / "page"
"""Where `make page` (vite) puts the built page."""

_DOCS_ASSETS = "/docs-assets"
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)

_NO_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>DocuMind</title></head><body>
<h1>DocuMind is running</h1>
<p>The web page has not been built. With Node.js installed, run <code>make page</code>
in the project's folder and reload.</p>
<p>Without it everything works from the command line, for example
<code>documind ask "your question"</code>, and over HTTP:
<a href="docs">API documentation</a>.</p>
</body></html>
"""


def add_page(app: FastAPI, directory: Path = PAGE_DIR) -> None:
    """Serve the built page at `/`, its files and links into it; without it say how to make one."""
    index = directory / "index.html"
    built = index.is_file()

    def front() -> Response:
        # The index names hashed assets; a stale copy would ask for files that are gone.
        return (
            FileResponse(index, headers={"Cache-Control": "no-cache"})
            if built
            else HTMLResponse(_NO_PAGE)
        )

    # async, like liveness: the page must come up when the thread pool is busy.
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return front()

    if not built:
        return
    for entry in directory.iterdir():
        if entry.is_dir():
            app.mount(f"/{entry.name}", StaticFiles(directory=entry), name=f"page-{entry.name}")
        elif entry != index:
            app.add_api_route(f"/{entry.name}", partial(_file, entry), include_in_schema=False)
    not_found = app.router.default

    async def link_into_page(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and _asks_for_page(Request(scope)):
            await front()(scope, receive, send)
        else:
            await not_found(scope, receive, send)

    app.router.default = link_into_page


async def _file(path: Path) -> Response:
    return FileResponse(path)


def _asks_for_page(request: Request) -> bool:
    """Return whether a browser follows a link into the page, not an API client."""
    path = request.scope["path"]
    return (
        not needs_key(path)
        and "." not in path.rpartition("/")[2]
        and "text/html" in request.headers.get("accept", "")
    )


def add_docs(app: FastAPI) -> None:
    """Serve /docs and /redoc with local assets of the fastapi-offline package."""
    assets = Path(str(resources.files("fastapi_offline"))) / "static"
    app.mount(_DOCS_ASSETS, StaticFiles(directory=assets), name="docs-assets")

    def serve(path: str, make: Callable[..., HTMLResponse], files: Mapping[str, str]) -> None:
        @app.get(path, include_in_schema=False)
        async def page(request: Request) -> HTMLResponse:
            root = request.scope.get("root_path", "")
            urls = {name: f"{root}{_DOCS_ASSETS}/{file}" for name, file in files.items()}
            return _relaxed(make(openapi_url=f"{root}/openapi.json", title="DocuMind API", **urls))

    swagger = {"js": "swagger-ui-bundle.js", "css": "swagger-ui.css", "favicon": "favicon.png"}
    serve("/docs", get_swagger_ui_html, {f"swagger_{n}_url": file for n, file in swagger.items()})
    redoc = {"redoc_js_url": "redoc.standalone.js", "redoc_favicon_url": "favicon.png"}
    serve("/redoc", partial(get_redoc_html, with_google_fonts=False), redoc)


def _relaxed(page: HTMLResponse) -> HTMLResponse:
    """Allow this page's inline scripts by hash, its styles and Redoc's worker; no other host."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in _INLINE.findall(bytes(page.body).decode())
    )
    page.headers["Content-Security-Policy"] = (
        f"default-src 'self'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data:;"
        " worker-src blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    return page
