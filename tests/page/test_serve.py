"""The browser page is served from its built files, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from chargeback.page import accepts_encoding
from chargeback.page.serve import BUILT, PageFiles, page_routes
from tests.support.serving import served

INLINE = "document.title = 1"
PAGE = (
    f'<!doctype html><base href="./"><script>{INLINE}</script><script type="module" src="./assets/index-1.js"></script>'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small page, in the layout of the build."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(PAGE)
    (folder / "icon.svg").write_text("<svg><script>alert(1)</script></svg>")
    for suffix, content in {"": "plain", ".gz": "as gzip", ".br": "as brotli"}.items():
        (folder / "assets" / f"index-1.js{suffix}").write_text(content)
    (folder / "assets" / "inter-1.woff2").write_text("a font")
    (folder / "assets" / "notes.txt").write_text("of no known type")
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    """A client of an application that serves only the page."""
    with _client_of(folder) as client:
        yield client


@contextmanager
def _client_of(folder: Path) -> Iterator[httpx.Client]:
    app = FastAPI()
    app.router.routes.extend(page_routes(PageFiles(folder)))
    with served(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


def test_the_page_is_one_slash_away(client: httpx.Client) -> None:
    """`/ui` redirects to `/ui/` with a relative address."""
    answer = client.get("/ui")
    assert (answer.status_code, answer.headers["location"]) == (308, "ui/")


@pytest.mark.parametrize(
    ("path", "base"),
    [("", "./"), ("acme", "./"), ("acme/", "../"), ("acme/costs", "../"), ("a%20b/costs", "../"), ("a/b/c", "../../")],
)
def test_every_address_is_the_page(client: httpx.Client, path: str, base: str) -> None:
    """Every address below `/ui/` serves the page, whose base address refers to its files."""
    answer = client.get(f"/ui/{path}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.text == PAGE.replace('"./"', f'"{base}"', 1)
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(f"/ui/{path}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("accepted", "encoding", "content"),
    [
        ("gzip, deflate, br, zstd", "br", b"as brotli"),
        ("gzip", "gzip", b"as gzip"),
        ("br;q=0, gzip;q=0.5", "gzip", b"as gzip"),
        ("identity", None, b"plain"),
        ("", None, b"plain"),
    ],
)
def test_assets_are_compressed_and_kept(
    client: httpx.Client, accepted: str, encoding: str | None, content: bytes
) -> None:
    """An asset has the best encoding that the browser accepts, and may be cached indefinitely."""
    with client.stream("GET", "/ui/assets/index-1.js", headers={"Accept-Encoding": accepted}) as answer:
        assert b"".join(answer.iter_raw()) == content
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["", "acme/costs", "assets/index-1.js", "assets/inter-1.woff2", "icon.svg"])
def test_the_browser_is_told_to_load_nothing_else(client: httpx.Client, path: str) -> None:
    """Every response has a policy that allows only files of this service and no code from text except the page's
    own."""
    headers = client.get(f"/ui/{path}", headers={"Accept-Encoding": "identity"}).headers
    policy = headers["content-security-policy"]
    own = f" 'sha256-{base64.b64encode(hashlib.sha256(INLINE.encode()).digest()).decode()}'"
    scripts = "'self'" + (own if path in {"", "acme/costs"} else "")
    assert policy.startswith(f"default-src 'none'; script-src {scripts}; style-src 'self';")
    policy = policy.replace(own, "")
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"http|\*|unsafe|//", policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../health",
        "/ui/..",
        "/ui/%2e%2e/health",
        "/ui/acme/%2E%2E/costs",
        "/ui/assets/..%2findex.html",
        "/ui/assets/..%5cindex.html",
        "/ui/assets/%2e%2e/index.html",
        "/ui/assets/index-1.js.br",
        "/ui/assets/notes.txt",
        "/ui/assets/none.js",
        "/ui/assets/deeper/index-1.js",
        "/ui/assets/",
        "/ui//assets/index-1.js",
        "/ui/acme//costs",
        "/ui/.env",
        "/ui/a%00b",
    ],
)
def test_no_path_leaves_the_folder(client: httpx.Client, path: str) -> None:
    """Paths with dots, double or encoded slashes, and files that are not part of the page return 404."""
    address = client.base_url.copy_with(raw_path=path.encode())
    assert client.get(address).status_code == 404


def test_without_the_build_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    """If the page has not been built, the response says how to build it."""
    with _client_of(tmp_path / "nothing") as client:
        answer = client.get("/ui/acme/costs")
    assert answer.status_code == 503
    assert "make page" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


BUILT_PAGE = BUILT / "index.html"


@pytest.mark.skipif(not BUILT_PAGE.is_file(), reason="the page has not been built")
def test_the_built_page_loads_only_its_own_files() -> None:
    """The built files refer to no other host, and the first load is below 95 kB without the responses."""
    files = PageFiles()
    page = files.page
    assert page is not None
    text = page.contents["identity"].decode()
    assert '<base href="./">' in text
    loaded = re.findall(r'(?:src|href)="\./([^"]*)"', text)
    assert {name.removeprefix("assets/") for name in loaded if name} <= {*files.assets, *files.files}
    first = [name.removeprefix("assets/") for name in loaded if name.startswith("assets/")]
    typeface = [name for name in files.assets if re.fullmatch(r"inter-[^-]+\.woff2", name)]
    assert (len(first), len(typeface)) == (3, 1)
    sent = [files.assets[name].contents for name in first + typeface]
    assert sum(len(each.get("br", each["identity"])) for each in sent) < 95_000
    for name, asset in (files.assets | files.files).items():
        hosts = set(re.findall(rb"https?://([a-z0-9.-]+)", asset.contents["identity"]))
        assert hosts <= {b"www.w3.org"}, name  # XML namespaces


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("br, GZIP ; q=0.5", True),
        ("gzip;q=1.0", True),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0.000, *", False),
        ("gzip, *;q=0", True),
        ("", False),
        ("br", False),
        ("not-gzip", False),
    ],
)
def test_who_takes_gzip(header: str, accepted: bool) -> None:
    """Encodings are case-insensitive with weights; ``*`` matches those that are not listed, and the weight 0 rejects
    one."""
    assert accepts_encoding(header, "gzip") is accepted
