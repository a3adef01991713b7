"""An ecosystem in a separate package: installed, discovered, configured, and run through the whole pipeline."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import MISSING, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.model.billing import BillingLine
from chargeback.model.inventory import Grant, Identity, ListedInventory, Resource
from tests.support.clock import TODAY

pytestmark = pytest.mark.usefixtures("process")

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "acme-ecosystem"
TUTORIAL = ROOT / "docs" / "write-an-ecosystem.md"
DAY = TODAY - timedelta(days=5)

#: Runs the tenant ``acme`` of a file and prints the result.
PROGRAM = textwrap.dedent(
    """
    import json, sys
    from datetime import date
    from pathlib import Path
    from chargeback.model.money import render
    from tests.support.pipeline import run_pipeline

    def main():
        day = date.fromisoformat(sys.argv[2])
        with run_pipeline(Path(sys.argv[1]), "acme") as ran:
            rows = [[r["product_type"], r["resource_id"], r["identity_id"], render(r["amount"]),
                     r["allocation_detail"]] for r in ran.chargebacks(day)]
            wrong = [str(check.day) for check in ran.checks() if check.difference or check.state != "calculated"]
            print(json.dumps({"outcome": ran.result.outcome, "errors": ran.result.errors, "rows": rows,
                              "wrong": wrong, "days": len(ran.checks())}))

    if __name__ == "__main__":  # the run is a process of its own, which imports this file too
        main()
    """
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed by pip into a separate folder without network access."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    shutil.copytree(PACKAGE, source, dirs_exist_ok=True)
    shutil.copy(Path(__file__).with_name("offline_backend.py"), source)
    project = (source / "pyproject.toml").read_text(encoding="utf-8")
    offline = '[build-system]\nrequires = []\nbuild-backend = "offline_backend"\nbackend-path = ["."]\n\n'
    rest = project[project.index("[project]") :]
    (source / "pyproject.toml").write_text(offline + rest, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check"]
    said = subprocess.run([*pip, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    return target


@pytest.fixture
def invoices(tmp_path: Path) -> Path:
    """Return a delivery of ACME: one day's charges, the buckets and the requests of each account."""
    folder = tmp_path / "invoices"
    folder.mkdir()
    (folder / "costs.csv").write_text(
        "date,bucket,product,cost\n"
        f"{DAY},photos,ACME_STORAGE,10.00\n"
        f"{DAY},photos,ACME_REQUESTS,3.00\n"
        f"{DAY},orphan,ACME_STORAGE,1.00\n"
        f"{DAY},,ACME_SUPPORT,2.00\n"
        f"{DAY},,ACME_CREDIT,-0.50\n"
        f"{DAY + timedelta(days=1)},photos,ACME_STORAGE,ten\n"
    )
    (folder / "buckets.csv").write_text("bucket,team\nphotos,web\nlogs,ops\norphan,\n")
    (folder / "requests.csv").write_text(
        f"date,bucket,team,requests\n{DAY},photos,web,1000\n{DAY},photos,mobile,2000\n{DAY},photos,ops,NaN\n"
    )
    return folder


def run(folder: Path, *words: str, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the repository's tests and, if given, an installed package on its path."""
    places = [str(ROOT), *([str(path)] if path else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "NO_COLOR": "1", "COLUMNS": "160"} | variables
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def run_acme(
    folder: Path, invoices: Path, *, path: Path | None = None, plugins: Path | None = None
) -> dict[str, object]:
    """Run the example's own configuration; return the result of the day."""
    text = (PACKAGE / "chargeback.yaml").read_text(encoding="utf-8")
    if plugins is not None:
        text = f"plugins_path: {plugins}\n{text}"
    (folder / "chargeback.yaml").write_text(text, encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    said = run(folder, "program.py", "chargeback.yaml", str(DAY), path=path, ACME_INVOICES=str(invoices))
    assert said.returncode == 0, said.stderr
    found: dict[str, object] = json.loads(said.stdout.splitlines()[-1])
    return found


def assert_is_right(found: dict[str, object]) -> None:
    """Check that the day is charged exactly, the invalid day is reported, and all sums agree."""
    assert found["rows"] == [
        ["ACME_CREDIT", "acme", "UNALLOCATED", "-0.50", "UNKNOWN_PRODUCT_TYPE"],
        ["ACME_SUPPORT", "acme", "mobile", "0.333333333333", "PROPORTIONAL_ALLOCATION"],
        ["ACME_STORAGE", "orphan", "mobile", "0.333333333334", "NO_OWNER_LOCATED"],
        ["ACME_REQUESTS", "photos", "mobile", "2.00", "USAGE_RATIO_ALLOCATION"],
        ["ACME_SUPPORT", "acme", "ops", "0.047619047619", "PROPORTIONAL_ALLOCATION"],
        ["ACME_STORAGE", "orphan", "ops", "0.333333333333", "NO_OWNER_LOCATED"],
        ["ACME_SUPPORT", "acme", "web", "1.619047619048", "PROPORTIONAL_ALLOCATION"],
        ["ACME_STORAGE", "orphan", "web", "0.333333333333", "NO_OWNER_LOCATED"],
        ["ACME_REQUESTS", "photos", "web", "1.00", "USAGE_RATIO_ALLOCATION"],
        ["ACME_STORAGE", "photos", "web", "10.00", "OWNER_ALLOCATION"],
    ]
    assert found["errors"] == [f"{DAY + timedelta(days=1)}: costs.csv: 'ten' is not a decimal number"]
    assert found["outcome"] == "completed_with_errors"
    assert found["wrong"] == []
    assert found["days"] == 28


def test_an_installed_package(installed: Path, invoices: Path, tmp_path: Path) -> None:
    """The ecosystem runs end to end when it is installed with its entry point."""
    assert (installed / "acme_ecosystem-1.0.0.dist-info" / "entry_points.txt").is_file()
    assert_is_right(run_acme(tmp_path, invoices, path=installed))


def test_a_package_in_plugins_path(invoices: Path, tmp_path: Path) -> None:
    """The same package runs from a folder on the server without being installed."""
    plugins = tmp_path / "plugins"
    shutil.copytree(PACKAGE / "src", plugins, ignore=shutil.ignore_patterns("__pycache__"))
    assert_is_right(run_acme(tmp_path, invoices, plugins=plugins))


def check(folder: Path, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``chargeback check`` with the example's configuration."""
    shutil.copy(PACKAGE / "chargeback.yaml", folder)
    words = ("-m", "chargeback", "check", "--config", "chargeback.yaml", "--online")
    return run(folder, *words, path=path, ACME_INVOICES=str(folder / "invoices"))


def test_check_asks_the_package(installed: Path, invoices: Path, tmp_path: Path) -> None:
    """The package's findings are part of ``check --online`` and determine the exit code."""
    right = check(tmp_path, path=installed)
    assert (right.returncode, right.stderr) == (0, "")
    assert "costs.csv" in right.stdout
    (invoices / "requests.csv").unlink()
    wrong = check(tmp_path, path=installed)
    assert wrong.returncode == 1
    assert "requests.csv cannot be read" in wrong.stdout


def test_a_package_that_cannot_be_imported(installed: Path, invoices: Path, tmp_path: Path) -> None:
    """A configured ecosystem whose code is broken prevents the start, with the reason and without a traceback."""
    broken = tmp_path / "broken"
    shutil.copytree(installed, broken)
    plugin = broken / "acme_ecosystem" / "plugin.py"
    with plugin.open("a", encoding="utf-8") as file:
        file.write("\nimport a_library_that_is_missing\n")
    said = check(tmp_path, path=broken)
    assert said.returncode == 2
    assert "tenants.acme.ecosystem" in said.stderr
    assert "a_library_that_is_missing" in said.stderr
    assert "Traceback" not in said.stderr


def test_without_the_package(invoices: Path, tmp_path: Path) -> None:
    """A configured ecosystem that is not installed is an error."""
    said = check(tmp_path)
    assert said.returncode == 2
    assert "there is no such ecosystem" in said.stderr


def test_the_tutorial_is_the_package() -> None:
    """The blocks of each file on the page together are that file, and every file of the package is shown."""
    text = TUTORIAL.read_text(encoding="utf-8")
    shown: dict[str, str] = {}
    for name, continued, block in re.findall(
        r"^`([\w./-]+)`(, continued)?:\n\n```(?:python|toml)\n(.*?)```\n", text, re.DOTALL | re.MULTILINE
    ):
        assert bool(continued) is (name in shown), name
        shown[name] = f"{shown[name]}\n{block}" if name in shown else block
    files = {
        file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(PACKAGE.rglob("*"))
        if file.suffix in {".py", ".toml"}
    }
    assert shown == files
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert (PACKAGE / "chargeback.yaml").read_text(encoding="utf-8") in examples


@pytest.mark.parametrize(
    "record",
    [
        BillingLine,
        Capabilities,
        Finding,
        GatheredDay,
        Grant,
        Identity,
        ListedInventory,
        MeasuredUsage,
        Resource,
        TenantContext,
    ],
)
def test_the_tutorial_names_every_field(record: type[Any]) -> None:
    """Each record that a plugin creates or receives has a table of its fields, which marks the required ones."""
    table = TUTORIAL.read_text(encoding="utf-8").partition(f"| field of `{record.__name__}` |")[2].partition("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (yes|) ?\|", table, re.MULTILINE))
    assert documented == {
        field.name: "yes" if field.default is MISSING and field.default_factory is MISSING else ""
        for field in fields(record)
    }


def test_the_tests_of_the_package(tmp_path: Path) -> None:
    """The tests of the package pass with only pytest and the installed service."""
    shutil.copytree(PACKAGE, tmp_path / "acme")
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "acme",
        env=os.environ | {"PYTHONPATH": str(tmp_path / "acme" / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert said.returncode == 0, said.stdout
    assert "1 passed" in said.stdout
