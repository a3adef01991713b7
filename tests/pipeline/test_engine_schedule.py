"""When the engine runs tenants: the interval, the gap, the slots, and unavailable storage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text, update

from chargeback.config import Configuration, Tenant, load_configuration
from chargeback.errors import EngineBusy, LeaseHeld, QueryTimeout, SchemaError, StorageError
from chargeback.model.days import utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline import engine as engine_module
from chargeback.pipeline.engine import Engine
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.control import runs, schema
from chargeback.store.tenant import TenantStore, open_store
from tests.config.conftest import tenant
from tests.support.databases import open_migrated, own_postgres_server
from tests.support.executors import HeldRuns
from tests.support.processes import eventually

NAMES = ("acme", "beta")


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    """Return the configuration of two tenants on embedded databases."""
    file = tmp_path / "chargeback.yaml"
    second = tenant(tenant_id="beta", storage='{connection_string: "sqlite:///beta.db"}').replace("acme:", "beta:")
    file.write_text(f"features: {{max_parallel_tenants: 1}}\n{tenant()}{second.removeprefix('tenants:')}")
    return load_configuration(file)


def configured(configuration: Configuration, *, gap: int = 0, **features: object) -> Configuration:
    """Return the configuration with another gap and other features."""
    tenants = {
        name: replace(each, plugin_settings=each.plugin_settings.model_copy(update={"min_refresh_gap_seconds": gap}))
        for name, each in configuration.tenants.items()
    }
    return replace(configuration, tenants=tenants, features=configuration.features.model_copy(update=features))


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    """Yield a function that makes engines; stop them at the end."""
    engines = []

    def make(configuration: Configuration, executor: HeldRuns) -> Engine:
        engines.append(Engine(configuration, None, executor))
        return engines[-1]

    yield make
    for engine in engines:
        engine.stop()


@pytest.fixture
def store(configuration: Configuration) -> Iterator[TenantStore]:
    """Yield the prepared storage of acme."""
    with closing(open_migrated(configuration.tenants["acme"])) as store:
        yield store


def record_run(store: TenantStore, outcome: str, *, began: timedelta) -> None:
    """Record a run that started ``began`` ago and has just ended."""
    with store.control.write() as connection:
        run_id = runs.start_run(connection, 1)
        runs.finish_run(connection, run_id, outcome=outcome, errors=[], counts={})
        connection.execute(update(schema.runs).values(started_at=utc_now() - began))


def lines(caplog: pytest.LogCaptureFixture, word: str, name: str = "acme") -> list[str]:
    """Return the lines of the log about a tenant that contain a word."""
    return [each.getMessage() for each in caplog.records if word in each.getMessage() and name in each.getMessage()]


def test_the_gap_is_measured_from_the_start_of_the_last_run(
    configuration: Configuration,
    store: TenantStore,
    start: Callable[..., Engine],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run that began longer ago than the gap is followed by another, even if it has just ended. After a later one the
    engine waits, and logs once until when and why."""
    caplog.set_level(logging.INFO)
    executor = HeldRuns(hold=False)
    engine = start(configured(configuration, gap=1800), executor)
    record_run(store, "completed_with_errors", began=timedelta(seconds=1700))
    turn = engine._take_turn("acme")
    assert turn is not None
    assert 90 < turn.seconds <= 100
    assert "and completed with errors; min_refresh_gap_seconds is 1800" in turn.why
    again = engine._take_turn("acme")
    assert again is not None
    assert (turn.is_news, again.is_news) == (True, False)
    assert executor.tenants == []
    record_run(store, "completed", began=timedelta(seconds=1801))
    assert engine._take_turn("acme") is not None
    assert executor.tenants == ["acme"]


def test_the_defaults_refresh_every_half_hour(configuration: Configuration, start: Callable[..., Engine]) -> None:
    """With equal gap and interval, the next run begins one interval after this one began; a longer gap applies."""
    for gap, expected in ((1800, 1800), (0, 1800), (3600, 3600)):
        engine = start(configured(configuration, gap=gap), HeldRuns(hold=False))
        engine._stores["acme"].control.upgrade()
        with engine._stores["acme"].control.write() as connection:
            connection.execute(text("DELETE FROM runs"))
        turn = engine._take_turn("acme")
        assert turn is not None
        assert expected - 60 < turn.seconds <= expected


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "timed_out"])
def test_no_gap_after_a_run_that_did_not_complete(
    configuration: Configuration, store: TenantStore, start: Callable[..., Engine], outcome: str
) -> None:
    """After a run that did not complete, a starting worker runs the tenant at once."""
    executor = HeldRuns(hold=False)
    engine = start(configured(configuration, gap=1800), executor)
    record_run(store, outcome, began=timedelta(seconds=5))
    engine._take_turn("acme")
    assert executor.tenants == ["acme"]


def test_a_trigger_can_be_called_off(configuration: Configuration, start: Callable[..., Engine]) -> None:
    """An error that is raised before the start cancels the run: slot and lease are free, and nothing has run."""
    executor = HeldRuns()
    engine = start(configuration, executor)

    def _call_off() -> None:
        raise QueryTimeout("the request is over")

    with pytest.raises(QueryTimeout):
        engine.trigger("acme", RunRequest(), _call_off)
    assert executor.tenants == []
    engine.trigger("acme", RunRequest())
    eventually(lambda: executor.tenants == ["acme"])
    executor.started[0].end()


def test_triggered_runs_count_against_the_limit(configuration: Configuration, start: Callable[..., Engine]) -> None:
    """With one slot, a second tenant is refused until the first run has ended, and its lease is free; a trigger for the
    running tenant reports that it is running."""
    executor = HeldRuns()
    engine = start(configuration, executor)
    engine.trigger("acme", RunRequest())
    with pytest.raises(EngineBusy, match="max_parallel_tenants"):
        engine.trigger("beta", RunRequest())
    with pytest.raises(LeaseHeld, match="already running for tenant acme"):
        engine.trigger("acme", RunRequest())
    eventually(lambda: executor.tenants == ["acme"])
    executor.started[0].end()

    def accepted() -> bool:
        try:
            engine.trigger("beta", RunRequest())
        except EngineBusy:
            return False
        return True

    eventually(accepted)
    eventually(lambda: executor.tenants == ["acme", "beta"])


def on_postgresql(tenant: Tenant, address: str) -> Tenant:
    """Return the tenant with its control database on a server."""
    return replace(tenant, storage=replace(tenant.storage, connection_string=SecretStr(address)))


@pytest.mark.usefixtures("process")
def test_a_database_that_is_away_is_waited_for(
    configuration: Configuration,
    start: Callable[..., Engine],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a database is away, no tenant is suspended, the log has one line, and the other tenant runs; when it
    responds, its tables are set up, an old suspension is cleared and the tenant runs."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(engine_module, "_MAX_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(engine_module, "_FIRST_RETRY_SECONDS", 0.1)
    with own_postgres_server() as server:
        acme = on_postgresql(configuration.tenants["acme"], server.address)
        settings = acme.settings.model_copy(update={"gather_failure_threshold": 2})
        both = replace(
            configuration, tenants={"acme": replace(acme, settings=settings), "beta": configuration.tenants["beta"]}
        )
        with closing(open_store(both.tenants["acme"])) as store:
            store.control.upgrade()
            with store.control.write() as connection:
                runs.suspend(connection, "an old story")
        server.stop("fast")
        executor = HeldRuns(hold=False)
        engine = start(both, executor)
        engine.start()
        eventually(lambda: executor.tenants == ["beta"])
        eventually(lambda: engine._attempts.get("acme", 0) > 5)
        with pytest.raises(StorageError):
            engine.trigger("acme", RunRequest())
        assert len(lines(caplog, "its storage cannot be used")) == 1
        assert not lines(caplog, "ALERT")
        server.start()
        eventually(lambda: executor.tenants == ["beta", "acme"])
        assert len(lines(caplog, "its storage can be used again")) == 1
        with psycopg.connect(server.address) as connection:
            assert connection.execute("SELECT suspended_because FROM tenant").fetchone() == (None,)
        engine.stop()


def test_a_newer_database_at_start_ends_the_service(
    configuration: Configuration, store: TenantStore, start: Callable[..., Engine]
) -> None:
    """A permanent error ends the service at start; found later, it affects that tenant only."""
    with store.control.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    failed: list[str] = []
    engine = start(configuration, HeldRuns(hold=False))
    engine.start(lambda: failed.append("now"))
    eventually(lambda: failed == ["now"])
    assert isinstance(engine.failure, SchemaError)
    later = start(configuration, HeldRuns(hold=False))
    later._tried.add("acme")
    turn = later._take_turn("acme")
    assert turn is not None
    assert later.failure is None


def test_a_suspended_tenant_says_so_and_waits(
    configuration: Configuration, store: TenantStore, start: Callable[..., Engine]
) -> None:
    """The log line has the reason, and the tenant is checked again, because another worker may be restarted."""
    engine = start(configuration, HeldRuns(hold=False))
    with store.control.write() as connection:
        runs.suspend(connection, "gathering failed 5 times in a row")
    turn = engine._take_turn("acme")
    assert turn is not None
    assert turn.why == "it is suspended: gathering failed 5 times in a row"


def test_without_periodic_refresh_tenants_are_prepared_all_the_same(
    configuration: Configuration, start: Callable[..., Engine]
) -> None:
    """The tables are set up, and nothing is run."""
    executor = HeldRuns(hold=False)
    engine = start(configured(configuration, enable_periodic_refresh=False), executor)
    engine.start()
    with closing(open_store(configuration.tenants["acme"])) as store:
        eventually(store.control.is_current)
    assert executor.tenants == []


def test_stopping_ends_runs_and_waits(configuration: Configuration, start: Callable[..., Engine]) -> None:
    """A run in progress is stopped, and one that waits for its slot never begins."""
    executor = HeldRuns()
    engine = start(configuration, executor)
    engine.start()
    eventually(lambda: len(executor.started) == 1 and engine._places.waiting == 1)
    engine.stop()
    assert len(executor.started) == 1
    assert executor.started[0]._outcome is RunOutcome.INTERRUPTED
