"""The packages of the browser page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.test_project import listed

WEB = Path(__file__).parents[2] / "web"
MANIFEST = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
LOCK = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]


@pytest.mark.parametrize(
    ("heading", "group"),
    [
        ("Of the browser page, when it is built", "dependencies"),
        ("Of the browser page, when it is tested", "devDependencies"),
    ],
)
def test_every_package_has_a_reason_and_its_licence(heading: str, group: str) -> None:
    """The table has a line for exactly the direct dependencies, with the correct licences."""
    assert listed(heading) == {name: LOCK[f"node_modules/{name}"]["license"] for name in MANIFEST[group]}


def test_versions_are_exact() -> None:
    """The manifest pins each package to the version in the lock, one of them under another name."""
    for name, wanted in (MANIFEST["dependencies"] | MANIFEST["devDependencies"]).items():
        version = re.sub(r"^npm:@preact/compat@", "", wanted)
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        assert LOCK[f"node_modules/{name}"]["version"] == version


def test_the_lock_has_digests_and_no_addresses() -> None:
    """Packages in the lock have digests and no addresses, so that any mirror can be used."""
    for name, package in LOCK.items():
        if name:
            assert package["integrity"].startswith("sha512-"), name
            assert "resolved" not in package, name


def test_what_is_bundled_may_be_passed_on() -> None:
    """The licences of everything that the build installs allow redistribution."""
    built = {package["license"] for name, package in LOCK.items() if name and not package.get("dev")}
    assert built <= {"MIT", "ISC", "BSD-3-Clause", "Apache-2.0", "MPL-2.0", "OFL-1.1", "0BSD"}
