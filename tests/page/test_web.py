"""The page's own tests: unit tests in Node, and its use in a real browser."""

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
# The browser has no graphics acceleration here, and shares two processors with the other tests.
pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("process")]
#: Tests in a browser with the fake service.
FILES = (
    *("access", "anomalies", "answers", "categories", "explore", "formats", "health", "journeys", "ownership", "pages"),
    "states",
)
#: The browser test of the everyday run: from a cost to its explanation.
EVERYDAY = pytest.param("why", marks=pytest.mark.everyday)
#: The states that all pages share, tested on each page.
EVERY_STATE = pytest.param("everypage", marks=pytest.mark.drill)
#: Four users' tasks, on a good, a slow and a broken network.
WALKS = pytest.param("walks", marks=pytest.mark.drill)
#: A variant without windows is preferred, because it takes half the time.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)


def node(*words: str, sent: str | None = None, **environment: str) -> str:
    """Run Node in the page's folder with the input ``sent``; return its output, which is shown on failure."""
    assert (WEB / "node_modules" / ".all").exists(), "`make test` installs what the page's tests need"
    env, limit = os.environ | environment, 580
    done = subprocess.run(
        [NODE, *words], cwd=WEB, env=env, input=sent, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-4000:]
    return done.stdout


def test_the_laws_of_the_page_hold() -> None:
    """The unit tests of money, dates, names, the address, and the geometry of the charts pass."""
    node("node_modules/vitest/vitest.mjs", "run")


def test_the_types_of_the_page_are_those_of_the_document(tmp_path: Path) -> None:
    """`npm run types` reproduces the types of responses from the API's document."""
    made = tmp_path / "schema.d.ts"
    node("node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", str(made))
    assert made.read_bytes() == (WEB / "src" / "api" / "schema.d.ts").read_bytes()


def test_the_filters_of_the_page_are_those_of_the_document(tmp_path: Path) -> None:
    """`npm run types` reproduces the filters and groups from the API's document."""
    made = tmp_path / "filters.ts"
    node("filters.ts", str(made))
    assert made.read_bytes() == (WEB / "src" / "api" / "filters.ts").read_bytes()


def artifacts() -> str:
    """Return the folder for screenshots of the page; empty if none are requested."""
    found = os.environ.get("CHARGEBACK_ARTIFACTS")
    return "" if found is None else str(Path(found).absolute())


@pytest.mark.parametrize("file", [*FILES, EVERYDAY, EVERY_STATE, WALKS])
def test_the_page_works_in_a_browser(file: str) -> None:
    """The page works with its real headers, by mouse and keyboard, in every state, for every role and width, and
    offline."""
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
