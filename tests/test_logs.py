"""Logging."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from chargeback.config.settings import LoggingSettings
from chargeback.logs import MASK, configure_logging, log_context
from tests.support.logs import logging_restored


@pytest.fixture(autouse=True)
def _logging_is_restored() -> Iterator[None]:
    with logging_restored():
        yield


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """With the format json, each line is an object, with the tenant, run and date if they are known."""
    configure_logging(LoggingSettings(format="json"))
    with log_context(tenant="acme", run=7):
        logging.getLogger("chargeback.pipeline").info("gathered=%d", 3, extra={"date": "2026-01-02"})
    logging.getLogger("chargeback").warning("done\nat last")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "INFO",
        "logger": "chargeback.pipeline",
        "message": "gathered=3",
        "tenant": "acme",
        "run": "7",
        "date": "2026-01-02",
    }
    assert second["message"] == "done\nat last"
    assert "tenant" not in second


def test_a_format_may_name_the_context(capsys: pytest.CaptureFixture[str]) -> None:
    """A text format may include tenant, run and date, which are empty if they are unknown."""
    configure_logging(LoggingSettings(format="[%(tenant)s] %(message)s"))
    logging.getLogger("a").info("one")
    with log_context(tenant="acme"):
        logging.getLogger("a").info("two")
    assert capsys.readouterr().err.splitlines() == ["[] one", "[acme] two"]


@pytest.mark.parametrize("name", ["distributed", "distributed.scheduler", "distributed.nanny"])
def test_dask_tells_what_went_wrong_only(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Dask's debug messages are omitted at every level of the root logger, unless a level for it is configured."""
    configure_logging(LoggingSettings(level="DEBUG"))
    logging.getLogger(name).info("started a worker")
    logging.getLogger(name).warning("lost a worker")
    said = capsys.readouterr().err
    assert ("started a worker" in said, "lost a worker" in said) == (False, True)
    configure_logging(LoggingSettings(per_module_levels={"distributed": "INFO"}))
    logging.getLogger(name).info("started a worker")
    assert "started a worker" in capsys.readouterr().err


def test_levels(capsys: pytest.CaptureFixture[str]) -> None:
    """The level applies to all modules except those with their own level."""
    configure_logging(LoggingSettings(level="WARNING", per_module_levels={"quiet": "ERROR", "loud": "DEBUG"}))
    for name in ("quiet", "loud", "other"):
        logging.getLogger(name).warning("warned %s", name)
        logging.getLogger(name).debug("whispered %s", name)
    said = capsys.readouterr().err
    assert [name for name in ("quiet", "loud", "other") if f"warned {name}" in said] == ["loud", "other"]
    assert [name for name in ("quiet", "loud", "other") if f"whispered {name}" in said] == ["loud"]


def test_libraries_are_quiet_unless_named(capsys: pytest.CaptureFixture[str]) -> None:
    """httpx's line for every request is omitted unless a level for it is configured."""
    configure_logging(LoggingSettings(level="DEBUG"))
    logging.getLogger("httpx").info("a request")
    configure_logging(LoggingSettings(per_module_levels={"httpx": "INFO"}))
    logging.getLogger("httpx").info("another request")
    assert "a request" not in (said := capsys.readouterr().err)
    assert "another request" in said


@pytest.mark.parametrize("style", ["json", "%(message)s"])
def test_known_secrets_are_masked(capsys: pytest.CaptureFixture[str], style: str) -> None:
    """A secret that a library adds to a message, its arguments or a traceback is masked."""
    configure_logging(LoggingSettings(format=style), secrets={'to"p-secret', "abc"})
    try:
        int('refused to"p-secret')
    except ValueError:
        logging.getLogger("x").exception("with %s and abc", 'to"p-secret')
    said = capsys.readouterr().err
    assert "p-secret" not in said
    assert said.count(MASK) >= 2
    assert "and abc" in said


def test_configuring_twice_says_things_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A second configuration replaces the first, so that records are logged once."""
    configure_logging(LoggingSettings())
    configure_logging(LoggingSettings())
    logging.getLogger("x").error("only once")
    assert capsys.readouterr().err.count("only once") == 1
