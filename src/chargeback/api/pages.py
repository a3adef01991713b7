"""Pages for people: `/` redirects to the browser page, or to the documentation if that page is not served; `/docs`
shows the documentation of `/openapi.json`. The service serves everything that they load.

Addresses are relative, so that the pages work below any path of a proxy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from chargeback.api.responses import json_response
from chargeback.api.rewriting import prefix_of
from chargeback.api.services import Services
from chargeback.page import PageFiles, page_routes

#: What the pages may load: files of this service, and images embedded in the style sheet.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_ASSETS: Final = {
    "start.js": ("start.js", "text/javascript"),
    "swagger-ui-bundle.js": ("swagger-ui/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("swagger-ui/swagger-ui.css", "text/css"),
}


def add_pages(app: FastAPI, page: PageFiles | None) -> None:
    """Add the pages, which are not part of the OpenAPI document. ``page`` is the browser page, or None."""
    app.state.page = page
    pages: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": _index,
        "/docs": _docs,
        "/docs/{name}": _asset,
        "/openapi.json": _openapi,
    }
    for path, endpoint in pages.items():
        app.add_route(path, endpoint, methods=["GET"], include_in_schema=False)
    if page is not None:
        app.router.routes.extend(page_routes(page))


async def _index(request: Request) -> Response:
    """Redirect a browser to its page; return the addresses of the service to other clients."""
    headers = {"Vary": "Accept"}
    page: PageFiles | None = request.app.state.page
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("docs" if page is None else "ui/", headers=headers)
    services: Services = request.app.state.services
    links = {"documentation": "docs", "openapi": "openapi.json", "health": "health", "metrics": "metrics"}
    if services.mode != "worker":
        links |= {"readiness": "api/v1/readiness", "tenants": "api/v1/tenants"}
    if page is not None and page.page is not None:
        links |= {"page": "ui/"}
    return json_response({"name": "chargeback", "version": services.version, "links": links}, headers=headers)


async def _openapi(request: Request) -> Response:
    """Return the OpenAPI document; below the prefix of a proxy it says where the paths begin."""
    prefix = prefix_of(request.scope)
    document = request.app.openapi()
    return json_response(document | {"servers": [{"url": prefix}]} if prefix else document)


async def _docs(request: Request) -> Response:
    return _file(request, "docs.html", "text/html")


async def _asset(request: Request) -> Response:
    found = _ASSETS.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return _file(request, *found)


def _file(request: Request, name: str, media_type: str) -> Response:
    content, digest = _content(name)
    headers = _HEADERS | {"ETag": digest}
    if digest in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


@lru_cache(maxsize=len(_ASSETS) + 1)
def _content(name: str) -> tuple[bytes, str]:
    """Return a file of the package and its ETag."""
    content = files("chargeback.api").joinpath("static", name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
