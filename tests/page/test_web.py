"""The page's own tests: its laws in Node, and its use in a real browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chargeback.api.app import create_app
from chargeback.page.serve import BUILT
from tests.support.serving import served, services_for

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
NODE = Path(sys.executable).with_name("node")
# A browser has no help from a graphics card here, and shares two processors with the other tests.
pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("process")]
#: What is used in a browser over the fake service.
FILES = (
    *("access", "anomalies", "answers", "categories", "explore", "formats", "health", "journeys", "ownership", "pages"),
    "states",
)
#: The walk through the page that the everyday run has: from a cost to why it is so.
EVERYDAY = pytest.param("why", marks=pytest.mark.everyday)
#: The states that all pages have by the same code, page by page.
EVERY_STATE = pytest.param("everypage", marks=pytest.mark.drill)
#: Four persons on their ways, over a good, a slow and a broken network.
WALKS = pytest.param("walks", marks=pytest.mark.drill)
#: Without windows, if there is such a one: it takes half the time.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)


def node(*words: str, sent: str | None = None, **environment: str) -> str:
    """Run Node in the page's folder with the input ``sent``, and return its output, which is shown if it fails."""
    assert (WEB / "node_modules" / ".all").exists(), "`make test` installs what the page's tests need"
    env, limit = os.environ | environment, 580
    done = subprocess.run(
        [NODE, *words], cwd=WEB, env=env, input=sent, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-4000:]
    return done.stdout


def test_the_laws_of_the_page_hold() -> None:
    """Money, dates, names, the address, and the geometry of the charts."""
    node("node_modules/vitest/vitest.mjs", "run")


def test_the_types_of_the_page_are_those_of_the_document(tmp_path: Path) -> None:
    """`npm run types` gives the same bytes again: the page reads responses as the API's document describes them."""
    made = tmp_path / "schema.d.ts"
    node("node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", str(made))
    assert made.read_bytes() == (WEB / "src" / "api" / "schema.d.ts").read_bytes()


def test_the_filters_of_the_page_are_those_of_the_document(tmp_path: Path) -> None:
    """`npm run types` gives the same bytes again: the page filters and groups by what the API's document names."""
    made = tmp_path / "filters.ts"
    node("filters.ts", str(made))
    assert made.read_bytes() == (WEB / "src" / "api" / "filters.ts").read_bytes()


def artifacts() -> str:
    """Return the folder for pictures of the page; empty if they are not wanted."""
    found = os.environ.get("CHARGEBACK_ARTIFACTS")
    return "" if found is None else str(Path(found).absolute())


@pytest.mark.parametrize("file", [*FILES, EVERYDAY, EVERY_STATE, WALKS])
def test_the_page_works_in_a_browser(file: str) -> None:
    """With its real headers: by mouse and by keys, in every state, for every reader and width, and alone."""
    assert CHROMIUM is not None, "`make test` installs Debian's chromium-headless-shell"
    assert (BUILT / "index.html").exists(), "`make page` builds the page"
    with served(create_app(services_for())) as address:
        node(
            "--test",
            f"tests/browser/{file}.test.ts",
            FILES=f"{address}/ui/",
            CHROMIUM=CHROMIUM,
            ARTIFACTS=artifacts(),
        )
