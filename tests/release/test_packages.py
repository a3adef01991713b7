"""The wheel and the source distribution: their contents, and the demo run from the installed wheel.

Dependencies are those of this environment; `make packages` installs them again.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path

import pytest

from chargeback import __version__
from tests.cli.conftest import environment

pytestmark = pytest.mark.usefixtures("process")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INFO = f"chargeback-{__version__}.dist-info"


def build(project: Path, target: str, folder: Path) -> Path:
    """Build one package of a project into a folder, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (package,) = folder.iterdir()
    return package


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build(ROOT, "sdist", folder / "packed")) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"chargeback-{__version__}"


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution."""
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_what_the_service_needs(wheel: Path) -> None:
    """The wheel contains code, page, the files of /docs, migrations, demo, types and licence, but no tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        page = archive.read("chargeback/page/static/index.html").decode()
    assert "<title>" in page
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"chargeback", INFO}
    for name in (
        f"{INFO}/licenses/LICENSE",
        "chargeback/demo/cost_categories.yaml",
        "chargeback/py.typed",
        "chargeback/store/control/migrations/env.py",
    ):
        assert name in names, name
    kept = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src" / "chargeback").rglob("*") if file.is_file()}
    assert {name for name in kept if "__pycache__" not in name} <= names


def test_the_metadata_are_those_of_the_project(wheel: Path) -> None:
    """Name, version, licence, oldest Python, dependencies, extras and entry points are those of the project."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{INFO}/METADATA").decode())
        points = ConfigParser()
        points.read_string(archive.read(f"{INFO}/entry_points.txt").decode())
        records = list(csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())))
    assert (metadata["Name"], metadata["Version"]) == ("chargeback", __version__)
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    needed = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert len(needed) == len(PROJECT["dependencies"])
    assert dict(points["console_scripts"]) == PROJECT["scripts"]
    for group, entries in PROJECT["entry-points"].items():
        assert dict(points[group]) == entries
    assert len(records) > 500


def test_the_source_distribution_has_what_it_takes_to_go_on(source: Path) -> None:
    """The source distribution has tests, documentation, sources of the page, locks and examples, but no generated
    files."""
    for name in ("tests", "docs", "web/src", "requirements/runtime.lock", "examples", "deploy", "Makefile", "LICENSE"):
        assert (source / name).exists(), name
    for name in (".venv", "web/node_modules", "site", "demo-data", ".git"):
        assert not (source / name).exists(), name


def test_the_demo_runs_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    """The demo runs in a new environment with only the wheel and the dependencies of this environment."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    inside = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    (inside / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")

    def said(*words: str) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    code = "import chargeback, chargeback.page.serve as page; print(chargeback.__file__, page.BUILT.is_dir())"
    assert said(str(home / "bin" / "python"), "-c", code) == f"{inside / 'chargeback' / '__init__.py'} True\n"
    command = str(home / "bin" / "chargeback")
    assert said(command, "--version") == f"{__version__}\n"
    assert "the same to the last digit" in said(command, "demo", "--size", "small", "--days", "6", "--no-serve")
