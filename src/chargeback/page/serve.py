"""Serve the browser page below `/ui/`, compressed where the client accepts it.

`/ui/assets/` holds files whose names carry a digest of their content: browsers may keep them for good. Every other
address is the page itself, which reads the address and shows what it names; browsers ask each time whether it has
changed. All addresses in the page are relative, so that it works below any path of a proxy's choice.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

#: Where the page is, without the slash at its end.
PATH: Final = "/ui"

#: The folder into which `make page` builds.
BUILT: Final = Path(__file__).parent / "static"

_SCRIPTS: Final = "script-src 'self'"
_POLICY: Final = (
    f"default-src 'none'; {_SCRIPTS}; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_SECURITY: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".html": "text/html",
}
# The best first.
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
_BASE: Final = b'<base href="./">'
_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
# A part of an address: no dot at its beginning, and nothing that a proxy might read as a slash or a dot.
_PART = r"(?!\.)(?:[\w.~!$&'()*+,;=:@-]|%(?!2[ef]|5c|00)[0-9a-f]{2})+"
_ADDRESS: Final = re.compile(rf"(?:{_PART}/)*(?:{_PART})?", re.ASCII | re.IGNORECASE)
_NOT_BUILT: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Chargeback</title>"
    "<p>This page has not been built: run <code>make page</code> and start the service again. "
    "The API is served all the same.</p>"
)


def accepts_encoding(accept_encoding: str, name: str) -> bool:
    """Return whether an ``Accept-Encoding`` header allows the encoding ``name``; ``*`` stands for those it omits.

    >>> [accepts_encoding("br, gzip;q=0.8", name) for name in ("br", "gzip", "zstd")]
    [True, True, False]
    >>> [accepts_encoding("*, gzip;q=0", name) for name in ("br", "gzip")]
    [True, False]
    """
    offers = (offer.replace(" ", "").lower().partition(";q=") for offer in accept_encoding.split(","))
    accepted = {offered: not weight or weight.strip("0.") != "" for offered, _, weight in offers}
    return accepted.get(name, accepted.get("*", False))


@dataclass(frozen=True)
class _File:
    """One file with its encodings: ``contents`` maps the name of an encoding (`identity`, `gzip`, `br`) to bytes;
    ``policy`` is what a browser may load for it."""

    media_type: str
    contents: dict[str, bytes]
    etag: str
    policy: str = _POLICY

    @classmethod
    def read(cls, path: Path) -> _File:
        contents = {"identity": path.read_bytes()}
        for encoding, suffix in _ENCODINGS:
            compressed = path.with_name(path.name + suffix)
            if compressed.is_file():
                contents[encoding] = compressed.read_bytes()
        content = contents["identity"]
        # A script that is part of the page is allowed by its digest: no other script runs.
        inline = _INLINE.findall(content) if path.suffix == ".html" else []
        digests = (base64.b64encode(hashlib.sha256(each).digest()).decode() for each in inline)
        scripts = " ".join([_SCRIPTS, *(f"'sha256-{each}'" for each in digests)])
        return cls(_TYPES[path.suffix], contents, _digest(content), _POLICY.replace(_SCRIPTS, scripts))

    def best(self, accepted: str) -> str:
        """Return the best encoding that an ``Accept-Encoding`` header allows."""
        offered = (name for name, _ in _ENCODINGS if name in self.contents)
        return next((name for name in offered if accepts_encoding(accepted, name)), "identity")


class PageFiles:
    """The files of the page, read once. ``folder`` is what was built; it may be missing."""

    def __init__(self, folder: Path = BUILT) -> None:
        self.page = _read(folder, "*.html").pop("index.html", None)
        self.files = _read(folder, "*")
        self.assets = _read(folder / "assets", "*")

    def route(self, request: Request) -> Response:
        """Respond to a request below ``/ui/``."""
        rest = _raw_rest(request)
        if not _ADDRESS.fullmatch(rest):
            raise HTTPException(404)
        folder, _, name = rest.rpartition("/")
        if folder == "assets" or folder.startswith("assets/"):
            if folder != "assets" or name not in self.assets:
                raise HTTPException(404)
            return _answer(request, self.assets[name], _FOR_GOOD)
        if not folder and name in self.files:
            return _answer(request, self.files[name], _ASK_AGAIN)
        if self.page is None:
            return Response(_NOT_BUILT, status_code=503, media_type="text/html", headers=_SECURITY)
        return _page(request, self.page, depth=rest.count("/"))


def page_routes(files: PageFiles) -> list[Route]:
    """Return the routes of the page, for an application's root."""

    async def _redirect(_request: Request) -> Response:
        return RedirectResponse("ui/", status_code=308)

    async def _serve(request: Request) -> Response:
        return files.route(request)

    return [
        Route(PATH, _redirect, methods=["GET"], include_in_schema=False),
        Route(PATH + "/{rest:path}", _serve, methods=["GET"], include_in_schema=False),
    ]


def _read(folder: Path, pattern: str) -> dict[str, _File]:
    return {path.name: _File.read(path) for path in folder.glob(pattern) if path.suffix in _TYPES and path.is_file()}


def _raw_rest(request: Request) -> str:
    """Return the path below ``/ui/`` as the browser sent it, with its percent signs."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    sent = raw.partition(b"?")[0].decode("latin-1")
    head, found, rest = sent.partition(PATH + "/")
    if head or not found:
        raise HTTPException(404)
    return rest


def _page(request: Request, page: _File, *, depth: int) -> Response:
    """Return the page for an address with ``depth`` slashes below ``/ui/``."""
    base = b'<base href="%s">' % (b"../" * depth or b"./")
    content = page.contents["identity"].replace(_BASE, base, 1)
    return _answer(request, _File(page.media_type, {"identity": content}, _digest(content), page.policy), _ASK_AGAIN)


def _answer(request: Request, file: _File, caching: str) -> Response:
    encoding = file.best(request.headers.get("accept-encoding", ""))
    headers = _SECURITY | {
        "Content-Security-Policy": file.policy,
        "Cache-Control": caching,
        "ETag": f'"{file.etag}-{encoding}"',
        "Vary": "Accept-Encoding",
    }
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if encoding != "identity":
        headers["Content-Encoding"] = encoding
    return Response(file.contents[encoding], media_type=file.media_type, headers=headers)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
