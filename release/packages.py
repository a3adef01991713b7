"""``python -m release.packages DIST PYTHON...``: builds a wheel and a source distribution into the folder ``DIST``.

Each is installed into a new environment with the dependencies of the lock, the wheel for every ``PYTHON``, the source
distribution for the first; the demo runs from what was installed. Exits with 1 if anything fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "runtime.lock"
_OLDEST, _NEWEST = 11, 15
#: The installed package has the page, and is not the one of the checkout.
_CHECK = (
    "import chargeback, pathlib, sys;"
    "from chargeback.page.serve import BUILT;"
    "assert (BUILT / 'index.html').is_file(), BUILT;"
    "assert pathlib.Path(chargeback.__file__).is_relative_to(sys.prefix), chargeback.__file__;"
    "print(chargeback.__version__)"
)


def interpreters() -> list[str]:
    """Return the Pythons of this machine that are new enough, the one that runs this first, one for each version."""
    found = {sys.version_info[:2]: sys.executable}
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"))
    for minor in range(_OLDEST, _NEWEST + 1):
        for folder in folders:
            program = folder / f"python3.{minor}"
            if (3, minor) not in found and program.is_file() and _answers(program):
                found[3, minor] = str(program)
    return list(found.values())


def build(dist: Path) -> tuple[Path, Path]:
    """Build the wheel, through the source distribution, into an empty folder; return both.

    Raises:
        subprocess.CalledProcessError: The build failed, for example because the browser page is missing.
    """
    dist.mkdir(parents=True, exist_ok=True)
    for old in [*dist.glob("chargeback-*.whl"), *dist.glob("chargeback-*.tar.gz")]:
        old.unlink()
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(ROOT))
    (wheel,) = dist.glob("chargeback-*.whl")
    (source,) = dist.glob("chargeback-*.tar.gz")
    return wheel, source


def try_out(package: Path, interpreter: str, folder: Path) -> None:
    """Install a package with its dependencies into a new environment below ``folder``, and run the demo from it.

    Raises:
        subprocess.CalledProcessError: A command failed.
    """
    start = time.monotonic()
    environment = folder / "environment"
    _run(interpreter, "-m", "venv", str(environment))
    python = str(environment / "bin" / "python")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    _run(*pip, "--require-hashes", "-r", str(LOCK))
    _run(*pip, "--no-deps", str(package))
    _run(python, "-m", "pip", "--disable-pip-version-check", "check")
    version = _run(python, "-c", _CHECK, folder=folder).strip()
    command = str(environment / "bin" / "chargeback")
    assert _run(command, "--version", folder=folder).strip() == version
    said = _run(command, "demo", "--size", "small", "--days", "6", "--no-serve", folder=folder)
    assert "the same to the last digit" in said, said
    took = time.monotonic() - start
    print(f"{package.name}: installed, and the demo ran, with {interpreter} in {took:.0f} s", flush=True)


def main(dist: Path, pythons: list[str]) -> int:
    """Build and try the packages; return the exit code."""
    wheel, source = build(dist)
    wanted = pythons or interpreters()
    for package, interpreter in [*((wheel, python) for python in wanted), (source, wanted[0])]:
        with tempfile.TemporaryDirectory() as folder:
            try_out(package, interpreter, Path(folder))
    print("\n".join(str(each) for each in (wheel, source)))
    return 0


def _answers(program: Path) -> bool:
    """Return whether a program is a Python with everything that an environment needs; a shim may not be."""
    done = subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True, check=False)
    return done.returncode == 0


def _run(*command: str, folder: Path = ROOT) -> str:
    """Run a command without what Python is told by this environment; return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, shutil.which(command[0]) or command[0])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
