"""The files of the project."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from chargeback import __version__, how_to_install

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def names(requirements: list[str]) -> set[str]:
    """Return the packages in a list of requirements."""
    return {re.split(r"[\[<>=;~! ]", requirement, maxsplit=1)[0] for requirement in requirements}


def required(file: str) -> list[str]:
    """Return the requirements in a file of requirements/."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def listed(heading: str) -> dict[str, str]:
    """Return the packages in a table of CONTRIBUTING.md with their licences."""
    section = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"### {heading}")[2].partition("\n### ")[0]
    )
    return dict(re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE))


#: The input files of the locks of tools.
NEEDED = {f"{tool}.lock": required(f"{tool}.in") for tool in ("docs", "packages")}


@pytest.mark.parametrize(
    ("heading", "requirements"),
    [
        ("At run time", PROJECT["project"]["dependencies"]),
        ("For development", PROJECT["dependency-groups"]["dev"]),
        ("Of the documentation's site, when it is built", required("docs.in")),
        ("Of the packages, when they are built", required("packages.in")),
    ],
)
def test_every_dependency_has_a_reason(heading: str, requirements: list[str]) -> None:
    """The table has a line with reason and licence for exactly the existing dependencies."""
    assert listed(heading).keys() == names(requirements)


@pytest.mark.parametrize("lock", ["runtime.lock", "dev.lock", "docs.lock", "packages.lock"])
def test_dependencies_are_locked_with_hashes(lock: str) -> None:
    """Every required package is pinned, and every pinned package has hashes."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==[^\n]*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z0-9-]+==", text, re.MULTILINE))
    wanted = names(NEEDED.get(lock, PROJECT["project"]["dependencies"]))
    if lock == "dev.lock":
        wanted |= names(PROJECT["dependency-groups"]["dev"])
    assert wanted - set(pinned) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link on a page leads to an existing file and, if it has an anchor, to a heading."""
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text(encoding="utf-8")):
        file, _, heading = target.partition("#")
        other = (page.parent / file) if file else page
        assert other.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^a-z0-9_ -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_picture_is_shown() -> None:
    """The page about the browser page shows or names every picture, and all pictures are small enough."""
    shown = set(re.findall(r"\(images/([^)]+)\)", (ROOT / "docs" / "page.md").read_text(encoding="utf-8")))
    kept = {file.name: file.stat().st_size for file in (ROOT / "docs" / "images").iterdir()}
    assert kept.keys() == shown
    assert max(kept.values()) < 300_000


def test_yaml_in_the_pages_is_yaml() -> None:
    """Every YAML example in the documentation is valid YAML."""
    for page in PAGES:
        for example in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            assert yaml.safe_load(example)


def test_decisions_are_numbered() -> None:
    """Decisions are numbered without gaps, and each title has the number."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    for number, record in enumerate(records, start=1):
        assert record.name.startswith(f"{number:04d}-")
        assert record.read_text(encoding="utf-8").startswith(f"# {number}. ")


def test_unreleased_code_has_a_version_of_its_own() -> None:
    """With unreleased changes, the version is a development version of the next release, newer than all releases in the
    changelog; otherwise it is the newest release."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = changelog.partition("## [Unreleased]\n")[2].partition("\n## [")[0]
    newest = max(Version(each) for each in re.findall(r"^## \[(\d[^]]*)\]", changelog, re.MULTILINE))
    present = Version(__version__)
    if unreleased.strip():
        assert present.is_devrelease and present > newest
        assert f"To be {present.base_version}" in unreleased
    else:
        assert present == newest


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pipx_metadata.json", "`pipx install --force '.[mcp]'`"),
        ("uv-receipt.toml", "`uv tool install --force '.[mcp]'`"),
        ("pyvenv.cfg", "`pip install -e '.[mcp]'`"),  # these tests run from a checkout
    ],
)
def test_an_extra_is_installed_as_the_command_was(file: str, command: str, tmp_path: Path) -> None:
    """The message to install an extra fits the way in which the environment was created."""
    (tmp_path / file).touch()
    assert how_to_install("mcp", tmp_path) == f"{command} in a checkout of chargeback"


def test_nothing_is_installed_by_name() -> None:
    """No page, example or message installs the package by name: it is not published, and a package with this name on an
    index could be someone else's."""
    files = [*PAGES, *ROOT.glob("examples/**/*.*"), *ROOT.glob("deploy/**/*.*"), *ROOT.glob("src/chargeback/**/*.py")]
    for file in files:
        if file.is_file() and file.name not in {"releasing.md", "CHANGELOG.md"}:
            text = file.read_text(encoding="utf-8")
            assert not re.findall(r"pipx? install '?chargeback(?!-|\[[a-z,]+\] @ file:)|chargeback\[\w+\]", text), file


def test_the_extras_are_documented() -> None:
    """The page about installation has a line for exactly the package's extras."""
    section = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## Extras")[2].partition("\n## ")[0]
    table = section.partition("In a checkout")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == sorted(PROJECT["project"]["optional-dependencies"])


def test_the_installed_version_is_that_of_the_project() -> None:
    """The installed package has the version of the source; after a change, `make setup` installs it again."""
    assert version("chargeback") == __version__


@pytest.mark.usefixtures("process")
def test_secrets_of_a_checkout_are_ignored_by_git() -> None:
    """Files with keys that the README and other pages create in a checkout are ignored by git."""
    written = ["chargeback.yaml", "etc/chargeback.yaml", ".env", "data/acme.db", "demo-data/small"]
    said = subprocess.run(["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.stdout.split() == written


def test_commands_of_the_pages_run_on_macos() -> None:
    """Pages do not use options that only GNU commands have, such as a relative date."""
    gnu = re.compile(r"\bdate (-u )?-d |\bsed -i |\breadlink -f |\bsha256sum |\bgrep -P ")
    assert [page.name for page in PAGES if gnu.search(page.read_text(encoding="utf-8"))] == []


def test_make_names_its_targets() -> None:
    """The make commands in the README are targets of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"^\$ make (\w+)", readme, re.MULTILINE)):
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target


def test_sql_on_the_control_database_has_one_home() -> None:
    """Outside of `store/control`, modules do not create statements; from SQLAlchemy they import only types and
    addresses."""
    known = {"Connection", "RowMapping", "URL", "make_url", "ArgumentError"}
    for file in (ROOT / "src").rglob("*.py"):
        if file.is_relative_to(ROOT / "src" / "chargeback" / "store" / "control"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy"):
                assert {alias.name for alias in node.names} <= known, file
            elif isinstance(node, ast.Import):
                assert not [alias.name for alias in node.names if alias.name.startswith("sqlalchemy")], file


def test_the_table_of_packages_lists_the_layers() -> None:
    """The table has a line for exactly the parts of the package, in the order of the enforced layers."""
    (contract, *_) = PROJECT["tool"]["importlinter"]["contracts"]
    layers = [room for layer in contract["layers"] for room in re.findall(r"\w+", layer) if room != "__main__"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.partition("## Packages")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == layers
    parts = {file.stem for file in (ROOT / "src" / "chargeback").iterdir() if file.suffix == ".py" or file.is_dir()}
    assert parts - {"__init__", "__main__", "__pycache__"} == set(layers)
