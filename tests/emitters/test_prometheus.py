"""The emitter ``prometheus``: a real Prometheus reads its output."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from threading import Event

import pytest
from pydantic import ValidationError

from chargeback.emitters.contract import EmitterContext, Period
from chargeback.emitters.openmetrics import seconds
from chargeback.emitters.prometheus import (
    PrometheusEmitter,
    PrometheusParams,
    emitter_type,
    exposition,
    exposition_of,
)
from chargeback.model.days import start_of_day, utc_now
from chargeback.model.inventory import Identity
from chargeback.pipeline.emit_facts import StoredFacts
from chargeback.store.control.inventory import ensure_known
from chargeback.store.tenant import TenantStore
from tests.support.facts import Share, days_from, line, write_lines, write_shares
from tests.support.prometheus import RealPrometheus

DAYS = days_from(date(2026, 1, 30), 3)
CONTEXT = EmitterContext("grafana", "acme", "acme-id", "test_cloud", "EUR")


def fill(store: TenantStore) -> None:
    """Write three days on which two identities share two resources."""
    write_shares(
        store.facts,
        [
            Share(day, who, f"{n + 1}.25", resource=resource, line=f"{n}{who}{resource}", product=product)
            for n, day in enumerate(DAYS)
            for who in ("sa-1", "sa-2")
            for resource, product in (("lkc-1", "KAFKA_STORAGE"), ("lkc-2", "KAFKA_BASE"))
        ],
    )
    write_lines(store.facts, [line(day, f"{n + 1}.5", product="KAFKA_STORAGE") for n, day in enumerate(DAYS)])
    with store.control.write() as connection:
        ensure_known(
            connection,
            utc_now(),
            charged=[
                Identity("sa-1", "service_account", created_at=start_of_day(DAYS[1])),
                Identity("sa-2", "service_account", deleted_at=start_of_day(DAYS[2])),
            ],
        )


def emitter(path: Path | None, **more: object) -> PrometheusEmitter:
    """Return an emitter, with a history if there is a path."""
    written = {} if path is None else {"history_path": str(path)}
    return emitter_type.open(CONTEXT, PrometheusParams.model_validate(written | more), Event())


def at(day: date) -> float:
    """Return the Unix time of 00:00 UTC of a day."""
    return seconds(start_of_day(day))


@pytest.mark.usefixtures("process")
def test_a_loaded_history_answers_by_day(store: TenantStore, facts: StoredFacts, tmp_path: Path) -> None:
    """Each day has its own value at 00:00 UTC, sums over time are exact, and counts of the inventory follow its
    dates."""
    fill(store)
    facts.days = DAYS
    path = tmp_path / "deep" / "history.om"
    emitter(path).emit([Period.containing(DAYS[0], "daily")], facts)
    with RealPrometheus(path.read_text()) as prometheus:
        found = prometheus.query('chargeback_daily_amount{identity_id="sa-1",resource_id="lkc-1"}', at(DAYS[1]))
        assert [(each["metric"], each["value"][1]) for each in found] == [
            (
                {
                    "__name__": "chargeback_daily_amount",
                    "tenant": "acme",
                    "currency": "EUR",
                    "identity_id": "sa-1",
                    "resource_id": "lkc-1",
                    "product_type": "KAFKA_STORAGE",
                    "cost_type": "usage",
                },
                "2.25",
            )
        ]
        (total,) = prometheus.query("sum(sum_over_time(chargeback_daily_amount[3d]))", at(DAYS[2]) + 60)
        assert total["value"][1] == "27"
        (billed,) = prometheus.query("chargeback_daily_billed_amount", at(DAYS[2]))
        assert (billed["metric"]["product_type"], billed["value"][1]) == ("KAFKA_STORAGE", "3.5")
        accounts = [
            prometheus.query('chargeback_daily_identities{identity_type="service_account"}', at(day))[0]["value"][1]
            for day in DAYS
        ]
        assert accounts == ["1", "2", "1"]


def test_the_history_has_only_calculated_days_within_the_lookback(
    store: TenantStore, facts: StoredFacts, tmp_path: Path
) -> None:
    """A day that is not among the emitter's days is omitted, even between others; without days the file is empty."""
    fill(store)
    path = tmp_path / "history.om"
    facts.days = [DAYS[0], DAYS[2]]
    emitter(path).emit([], facts)
    stamps = {row.rsplit(" ", 1)[1] for row in path.read_text().splitlines() if not row.startswith("#")}
    assert stamps == {str(int(at(day))) for day in facts.days}
    facts.days = []
    emitter(path).emit([], facts)
    assert path.read_text() == "# EOF\n"


def test_without_a_path_nothing_is_written_and_only_the_newest_day_counts(facts: StoredFacts, tmp_path: Path) -> None:
    """Without a history, only the newest day is emitted, and no file is written."""
    emitter(None).emit([Period.containing(DAYS[0], "daily")], facts)
    assert emitter_type.wants_newest_only(PrometheusParams())
    assert not emitter_type.wants_newest_only(PrometheusParams(history_path=tmp_path / "x"))


def test_the_exposition_of_a_day(store: TenantStore, facts: StoredFacts) -> None:
    """The exposition has exact values without times, each family once for all tenants, and an end marker."""
    fill(store)
    shown = exposition_of(CONTEXT, PrometheusParams(labels=("product_type",)))
    assert shown is not None
    text = exposition({"acme": shown.last_day(DAYS[2], facts), "broken": None, "new": {}})
    lines = text.splitlines()
    assert 'chargeback_last_day_amount{tenant="acme",currency="EUR",product_type="KAFKA_BASE"} 6.50' in lines
    assert 'chargeback_last_day_billed_amount{tenant="acme",currency="EUR",product_type="KAFKA_STORAGE"} 3.50' in lines
    assert 'chargeback_last_day_identities{tenant="acme",identity_type="service_account"} 1' in lines
    assert f'chargeback_last_day_timestamp_seconds{{tenant="acme"}} {int(at(DAYS[2]))}' in lines
    assert [row for row in lines if row.startswith("chargeback_tenant_up")] == [
        'chargeback_tenant_up{tenant="acme"} 1',
        'chargeback_tenant_up{tenant="broken"} 0',
        'chargeback_tenant_up{tenant="new"} 1',
    ]
    assert len([row for row in lines if row.startswith("# TYPE chargeback_last_day_amount ")]) == 1
    assert lines[-1] == "# EOF"


def test_beyond_the_limit_the_smallest_series_become_one(store: TenantStore, facts: StoredFacts) -> None:
    """The largest amounts, including credits, have their own series; the rest is one series, and the total is exact."""
    amounts = {"a": "5", "b": "-4", "c": "0.000000000001", "d": "2", "e": "0.000000000002"}
    write_shares(store.facts, [Share(DAYS[0], who, amount, line=who) for who, amount in amounts.items()])
    shown = exposition_of(CONTEXT, PrometheusParams(labels=("identity_id", "cost_type"), max_series=3))
    assert shown is not None
    samples = shown.last_day(DAYS[0], facts)["chargeback_last_day_amount"]
    assert {dict(sample.labels)["identity_id"]: sample.value for sample in samples} == {
        "a": 5,
        "b": -4,
        "d": 2,
        "OTHER": Decimal("0.000000000003"),
    }


def test_no_labels_are_one_total(store: TenantStore, facts: StoredFacts) -> None:
    """With an empty list of labels there is a single series."""
    fill(store)
    shown = exposition_of(CONTEXT, PrometheusParams(labels=()))
    assert shown is not None
    (sample,) = shown.last_day(DAYS[2], facts)["chargeback_last_day_amount"]
    assert sample.value == 13


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": ["identity_id", "identity_id"]},
        {"labels": ["line_id"]},
        {"max_series": 0},
        {"history_path": ""},
        {"x": 1},
    ],
)
def test_params_that_are_refused(wrong: dict[str, object]) -> None:
    """Labels must be known and occur once, the limit must be positive, and a path must not be empty."""
    with pytest.raises(ValidationError):
        PrometheusParams.model_validate(wrong)


def test_one_emitter_per_tenant(tmp_path: Path) -> None:
    """Two emitters of one tenant would show the same series twice; they share a destination."""
    with_history = emitter_type.destinations(CONTEXT, PrometheusParams(history_path=tmp_path / "h.om"))
    without = emitter_type.destinations(CONTEXT, PrometheusParams())
    assert set(with_history) & set(without)
    assert len(with_history) == 2
