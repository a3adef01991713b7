"""Recalculation of days from stored evidence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from chargeback import recompute
from chargeback.allocation.day import CalculatedDay
from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.errors import DamagedFacts, SourceUnavailable, StorageError
from chargeback.model.inventory import Inventory, Resource
from chargeback.recompute.days import DayRecomputer, billed_lines
from chargeback.store.control.days import METRICS
from chargeback.store.control.inventory import read_inventory
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, MEMBERS_TABLE, SCHEMAS, USAGE_TABLE
from tests.support.damage import file_of, remove
from tests.support.facts import replace_day
from tests.support.sources import DAY, Laboratory, line

AWAY = SourceUnavailable("HTTP 503", source="metrics")
STATEMENT = "flink_statement"


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with a cluster that two identities use, and a pool whose statements have owners."""
    with Laboratory(tmp_path) as opened:
        sources = opened.sources
        pool, run = Resource("lfcp-1", "flink_compute_pool"), Resource("s-1", STATEMENT, "job", "lfcp-1", "sa-c")
        sources.listed = Inventory([*sources.listed.resources, pool, run], sources.listed.identities)
        sources.lines[DAY] = [
            line("100"),
            line("7", resource="lfcp-1", product="FLINK_NUM_CFUS", resource_type="flink_compute_pool"),
        ]
        sources.totals = {
            "bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10},
            "flink_cfu_minutes_by_statement": {("lfcp-1", "job"): 3},
        }
        yield opened


def recomputer(laboratory: Laboratory, catalogue: PolicyCatalogue | None = None) -> DayRecomputer:
    """Return a recomputer for the laboratory's tenant, with its own or the given policies."""
    tenant = laboratory.tenant
    with laboratory.store.control.read() as connection:
        inventory = read_inventory(connection)
    own = tenant.ecosystem.tenant_catalogue(tenant.plugin_settings)
    return DayRecomputer(laboratory.store.facts, tenant.ecosystem, catalogue or own, inventory)


def recomputed(laboratory: Laboratory, catalogue: PolicyCatalogue | None = None) -> CalculatedDay:
    """Return the day, recalculated from its stored evidence."""
    opened, state = recomputer(laboratory, catalogue), laboratory.state()
    usage, members = laboratory.stored(USAGE_TABLE), laboratory.stored(MEMBERS_TABLE)
    try:
        return opened.calculate(
            opened.evidence(state, usage, members, metrics_available=METRICS not in state.incomplete)
        )
    finally:
        opened.close()


def test_a_stored_day_comes_out_of_its_stored_evidence(laboratory: Laboratory) -> None:
    """The recalculated rows equal the stored ones exactly, and no table has a new version."""
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10", "sa-c": "7"}
    versions = [laboratory.store.facts.snapshot(name).version for name in SCHEMAS]
    rows = recomputed(laboratory).rows
    assert rows.cast(SCHEMAS[CHARGEBACKS_TABLE]).equals(laboratory.stored(CHARGEBACKS_TABLE))
    assert [laboratory.store.facts.snapshot(name).version for name in SCHEMAS] == versions


def test_a_day_without_metrics_comes_out_as_it_is(laboratory: Laboratory) -> None:
    """A day calculated without metrics is recalculated to the same rows."""
    laboratory.sources.fault = AWAY
    laboratory.run()
    rows = recomputed(laboratory).rows
    assert rows.cast(SCHEMAS[CHARGEBACKS_TABLE]).equals(laboratory.stored(CHARGEBACKS_TABLE))


def test_other_policies_may_be_tried(laboratory: Laboratory) -> None:
    """Other policies give other shares of the same bill, and the stored rows stay unchanged."""
    laboratory.run()
    stored = laboratory.stored(CHARGEBACKS_TABLE)
    own = laboratory.tenant.ecosystem.tenant_catalogue(laboratory.tenant.plugin_settings)
    evenly = {"portions": [{"share": 1, "try": ["even(active)"]}]}
    changed = parse_policies({"KAFKA_NETWORK_WRITE": evenly}, "allocation_policies")
    rows = recomputed(laboratory, own.override(changed)).rows
    amounts = {(row["identity_id"], row["product_type"]): int(row["amount"]) for row in rows.to_pylist()}
    assert amounts == {
        ("sa-a", "KAFKA_NETWORK_WRITE"): 50,
        ("sa-b", "KAFKA_NETWORK_WRITE"): 50,
        ("sa-c", "FLINK_NUM_CFUS"): 7,
    }
    assert laboratory.stored(CHARGEBACKS_TABLE).equals(stored)


def test_members_are_had_from_the_inventory_where_none_are_given(laboratory: Laboratory) -> None:
    """Without given members, the inventory provides the same ones that are stored."""
    laboratory.run()
    opened = recomputer(laboratory)
    try:
        usage = laboratory.stored(USAGE_TABLE)
        evidence = opened.evidence(laboratory.state(), usage, None, metrics_available=True)
    finally:
        opened.close()
    assert evidence.members.equals(laboratory.stored(MEMBERS_TABLE))
    assert "job" in usage["subject"].to_pylist()
    assert "sa-c" in evidence.usage["subject"].to_pylist()


@pytest.mark.extensive
@pytest.mark.parametrize("name", [BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE])
def test_lost_evidence_is_not_guessed(laboratory: Laboratory, name: str) -> None:
    """A day with a lost evidence file is not calculated."""
    laboratory.run()
    remove(Path(file_of(laboratory.store.facts, name, DAY).path))
    with pytest.raises(DamagedFacts):
        recomputed(laboratory)


def test_a_bill_with_missing_lines_is_refused(laboratory: Laboratory) -> None:
    """A bill must have as many lines as were gathered."""
    laboratory.run()
    facts, state = laboratory.store.facts, laboratory.state()
    assert billed_lines(facts, state).num_rows == 2
    replace_day(facts, BILLING_TABLE, DAY, laboratory.stored(BILLING_TABLE).slice(0, 1))
    with pytest.raises(StorageError, match="2 billing lines were stored, but 1 found"):
        billed_lines(facts, state)


def test_nothing_in_this_room_writes() -> None:
    """No module calls a function that changes a fact table or the control database."""
    writers = {
        "write",
        "replace_day",
        "commit",
        "save_day",
        "save_dataset",
        "mark_due",
        "register",
        "create",
        "acquire",
        "prepare",
        "upgrade",
    }
    for file in Path(recompute.__path__[0]).glob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not [call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr in writers], file.name
