"""The command line, called in the process of the test or in a process of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.cli import main
from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import utc_today
from tests.support.clock import FAKED, words_within
from tests.support.logs import logging_restored

Said = subprocess.CompletedProcess[str]
Run = Callable[..., Said]

COMMAND = [sys.executable, "-m", "chargeback"]
DAYS = 8
#: The present day for the organisation and for processes, even if midnight passes during the tests.
TODAY = utc_today()
#: The month of the last calculated day, as the command line takes it; that of today has none in its first days.
PERIOD = f"{TODAY - timedelta(days=CUTOFF_DAYS + 1):%Y-%m}"


def environment(**more: str) -> dict[str, str]:
    """Return the environment without variables that a configuration on this machine might use."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONFLUENT", "METRICS"))}
    return kept | {"NO_COLOR": "1", "COLUMNS": "160"} | FAKED | more


@pytest.fixture
def chargeback(tmp_path: Path) -> Run:
    """Call ``chargeback`` with arguments in the test's folder, within this process."""

    def run(*words: str, **more: str) -> Said:
        if words_within(TODAY):
            return in_a_process(tmp_path, *words, **more)
        return called(tmp_path, *words, **more)

    return run


@pytest.fixture
def chargeback_process(tmp_path: Path, process: None) -> Run:
    """Run ``chargeback`` with arguments in the test's folder, as a process of its own."""

    def run(*words: str, **more: str) -> Said:
        return in_a_process(tmp_path, *words, **more)

    return run


def in_a_process(folder: Path, *words: str, **more: str) -> Said:
    """Run ``chargeback`` as a process of its own, on the day of the organisation."""
    return subprocess.run(
        [*words_within(TODAY), *COMMAND, *words],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def called(folder: Path, *words: str, **more: str) -> Said:
    """Call ``chargeback`` in this process, with its own folder, environment, output and logs."""
    output, errors = io.BytesIO(), io.BytesIO()
    with (
        logging_restored(),
        pytest.MonkeyPatch.context() as patch,
        io.TextIOWrapper(io.BytesIO()) as nothing,
        io.TextIOWrapper(output, encoding="utf-8", write_through=True) as stdout,
        io.TextIOWrapper(errors, encoding="utf-8", write_through=True) as stderr,
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["chargeback", *words])
        for name, stream in (("stdin", nothing), ("stdout", stdout), ("stderr", stderr)):
            patch.setattr(sys, name, stream)
        for name in os.environ.keys() - (own := environment(**more)).keys():
            patch.delenv(name)
        for name, value in own.items():
            patch.setenv(name, value)
        mask = os.umask(0o077)
        try:
            code = main.run_command_line()
        finally:
            os.umask(mask)
        return Said([*COMMAND, *words], code, output.getvalue().decode(), errors.getvalue().decode())


@dataclass(frozen=True)
class Demo:
    """A served organisation and the configuration file of a tenant that is billed by it."""

    server: DemoServer
    file: Path


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A small organisation of a few days, nothing calculated yet."""
    with DemoServer(Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS))) as server:
        file = tmp_path / "chargeback.yaml"
        file.write_text(demo_configuration(server.info, tmp_path), encoding="utf-8")
        yield Demo(server, file)


@pytest.fixture(scope="session")
def calculated_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The same organisation after one run; tests copy it and do not change it."""
    folder = tmp_path_factory.mktemp("calculated")
    with DemoServer(Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS))) as server:
        file = folder / "chargeback.yaml"
        file.write_text(demo_configuration(server.info, folder), encoding="utf-8")
        said = (in_a_process if words_within(TODAY) else called)(folder, "run", "--config", str(file))
        assert said.returncode == 0, said.stderr
        yield Demo(server, file)


@pytest.fixture
def calculated(calculated_once: Demo, tmp_path: Path) -> Demo:
    """Copy a small organisation of a few calculated days."""
    shutil.copytree(calculated_once.file.parent, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "chargeback.yaml"
    file.write_text(demo_configuration(calculated_once.server.info, tmp_path), encoding="utf-8")
    return Demo(calculated_once.server, file)
