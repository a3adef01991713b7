"""Explanations of stored amounts, from the evidence of their revision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import update

from chargeback.allocation.policies import parse_policies
from chargeback.errors import HistoryGone, PluginError, SourceUnavailable
from chargeback.model.inventory import Identity, Inventory
from chargeback.model.run_request import RunRequest
from chargeback.recompute.explain import (
    ExplainKey,
    Explanation,
    PortionNeeded,
    explain,
)
from chargeback.recompute.rules import CONFIGURED, RECORDED, SHIPPED, AllocationRules
from chargeback.recompute.stored_day import LineNotFound
from chargeback.store.control.schema import files
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, MEMBERS_TABLE, USAGE_TABLE, FactTables
from tests.support.clock import NOW, FixedClock
from tests.support.damage import file_of, remove
from tests.support.facts import replace_day
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

NINE_TO_ONE = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
HALF = {"bytes_in": {("lkc-1", "sa-a"): 50, ("lkc-1", "sa-b"): 50}}
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with a cluster that two identities use, after its first run."""
    with Laboratory(tmp_path) as opened:
        opened.sources.lines[DAY] = [line("100"), line("30", product="SUPPORT", resource="org")]
        opened.sources.totals = NINE_TO_ONE
        opened.run()
        yield opened


def explained(
    laboratory: Laboratory, identity_id: str = "sa-a", *, product: str = "KAFKA_NETWORK_WRITE", **more: object
) -> Explanation:
    """Return the explanation of an identity's amount in the line of a product type."""
    rows = laboratory.stored(BILLING_TABLE).to_pylist()
    (line_id,) = (row["line_id"] for row in rows if row["product_type"] == product)
    key = ExplainKey(DAY, line_id, identity_id, **more)  # type: ignore[arg-type]
    return explain(laboratory.store, AllocationRules.of(laboratory.tenant), key)


def recalculated(laboratory: Laboratory) -> None:
    """Make another revision an hour later."""
    laboratory.sources.totals = HALF
    laboratory.clock = FixedClock(LATER)
    laboratory.run(RunRequest(recalculate=True, accept_less=True))


def test_a_stored_amount(laboratory: Laboratory) -> None:
    """The explanation has the row, its line, the shipped policy, and a calculation with the same result."""
    found = explained(laboratory)
    assert found.row is not None
    assert found.line is not None
    assert found.policy is not None
    assert (found.row["amount"], found.line["total_cost"], found.is_same) == (Decimal(90), Decimal(100), True)
    assert (found.policy.source, found.policy.matched) == (SHIPPED, "KAFKA_NETWORK_WRITE")
    assert (found.siblings.rows, found.siblings.sum, found.siblings.equals_line) == (2, Decimal(100), True)
    assert [(each.revision.cause, each.amount) for each in found.revisions] == [("first", Decimal(90))]


def test_every_row_of_a_day(laboratory: Laboratory) -> None:
    """Every row is recalculated with the same result, including those of dependent lines and unallocated ones."""
    for row in laboratory.stored(CHARGEBACKS_TABLE).to_pylist():
        key = ExplainKey(DAY, row["line_id"], row["identity_id"], row["portion"])
        found = explain(laboratory.store, AllocationRules.of(laboratory.tenant), key)
        assert (found.row, found.is_same) == (row, True)


def test_an_identity_that_gets_nothing(laboratory: Laboratory) -> None:
    """For an identity without a row, the explanation has the reason, and the calculation agrees."""
    found = explained(laboratory, "sa-c")
    assert found.portion is not None
    assert (found.row, found.is_same) == (None, True)
    assert found.portion.why_nothing == "no written bytes of it were measured on lkc-1"


def test_an_identity_that_does_not_exist(laboratory: Laboratory) -> None:
    """An unknown id is reported; if it is the name of an identity, the message has its id."""
    found = explained(laboratory, "sa-cc")
    assert (found.row, found.is_same, found.unknown) == (None, True, "no identity has the id sa-cc")
    assert found.portion is not None
    assert found.portion.why_nothing == found.unknown
    laboratory.sources.listed = Inventory([], [Identity("sa-a", "service_account", "payments")])
    laboratory.run()
    named = explained(laboratory, "payments").unknown
    assert named == "no identity has the id payments, which is the name of sa-a"
    assert explained(laboratory, "sa-c").unknown is None


def test_a_row_that_differs(laboratory: Laboratory) -> None:
    """A stored amount that does not follow from the evidence is reported as different."""
    rows = laboratory.stored(CHARGEBACKS_TABLE)
    position = rows.schema.get_field_index("amount")
    shifted = rows.set_column(
        position, rows.schema.field("amount"), rows["amount"].take(list(range(rows.num_rows))[::-1])
    )
    replace_day(laboratory.store.facts, CHARGEBACKS_TABLE, DAY, shifted)
    assert explained(laboratory).is_same is False


def test_the_evidence_is_that_of_the_revision(laboratory: Laboratory) -> None:
    """An earlier amount is explained by the measurements of that time; all revisions are listed."""
    recalculated(laboratory)
    now, before = explained(laboratory), explained(laboratory, as_of=NOW + timedelta(minutes=1))
    for found, amount, revision in ((now, 50, 2), (before, 90, 1)):
        assert found.row is not None
        assert (found.row["amount"], found.revision, found.is_same) == (Decimal(amount), revision, True)
        assert [each.amount for each in found.revisions] == [Decimal(90), Decimal(50)]
    with pytest.raises(LineNotFound, match="was not calculated then"):
        explained(laboratory, as_of=NOW - timedelta(days=1))


@pytest.mark.extensive
def test_a_bill_that_changed_since_the_calculation(laboratory: Laboratory) -> None:
    """Rows are explained by the bill from which they were calculated."""
    laboratory.sources.lines[DAY] = [line("200"), line("30", product="SUPPORT", resource="org")]
    laboratory.sources.fault = SourceUnavailable("HTTP 503", source="metrics")
    laboratory.clock = FixedClock(LATER)
    laboratory.run()
    found = explained(laboratory)
    assert found.row is not None
    assert found.line is not None
    assert found.is_same


def test_policies_that_were_changed(laboratory: Laboratory) -> None:
    """A row is explained by the policy that calculated it, even if another is configured now."""
    rules = AllocationRules.of(laboratory.tenant)
    evenly = {"KAFKA_NETWORK_WRITE": {"portions": [{"share": 1, "try": ["even(active)"]}]}}
    changed = AllocationRules(rules.catalogue.override(parse_policies(evenly, "x")), rules.shipped, rules.resolve)
    key = explained(laboratory).key
    found = explain(laboratory.store, changed, key)
    assert found.policy is not None
    assert (found.policy.source, found.policy.matched, found.is_same) == (RECORDED, None, True)
    configured = AllocationRules(rules.catalogue, changed.catalogue, rules.resolve)
    assert (explain(laboratory.store, configured, key).policy or found.policy).source == CONFIGURED


def test_policies_that_are_not_recorded(laboratory: Laboratory) -> None:
    """Without the recorded policies, neither a line nor one that depends on it is calculated."""
    rules = AllocationRules.of(laboratory.tenant)
    evenly = {"KAFKA_NETWORK_WRITE": {"portions": [{"share": 1, "try": ["even(active)"]}]}}
    changed = AllocationRules(rules.catalogue.override(parse_policies(evenly, "x")), rules.shipped, rules.resolve)
    keys = [explained(laboratory, product=name).key for name in ("KAFKA_NETWORK_WRITE", "SUPPORT")]
    with laboratory.store.control.write() as connection:
        connection.exec_driver_sql("DELETE FROM policies")
    for key in keys:
        found = explain(laboratory.store, changed, key)
        assert found.portion is None
        assert (found.missing or "").startswith("a policy that was in force is not recorded; ")
        assert found.row is not None


def test_a_plugin_that_fails(laboratory: Laboratory) -> None:
    """If the plugin cannot find the owners of usage, nothing is calculated, and the explanation has the reason."""

    def fail(*_: object) -> pa.Table:
        raise PluginError("the plugin has failed")

    rules = AllocationRules.of(laboratory.tenant)
    found = explain(laboratory.store, replace(rules, resolve=fail), explained(laboratory).key)
    assert (found.portion, found.missing) == (None, "the plugin has failed")


@pytest.mark.parametrize("name", [BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE])
def test_lost_evidence(laboratory: Laboratory, name: str) -> None:
    """Without a file of the evidence, nothing is calculated; the explanation has the row and the reason."""
    key = explained(laboratory).key
    remove(Path(file_of(laboratory.store.facts, name, DAY).path))
    found = explain(laboratory.store, AllocationRules.of(laboratory.tenant), key)
    assert (found.portion, found.is_same) == (None, None)
    assert found.row is not None
    assert found.missing is not None
    assert "cannot be read; `chargeback verify` names the damaged file" in found.missing
    assert "/" not in found.missing
    assert (found.line is None) == (name == BILLING_TABLE)


def give_up(facts: FactTables, name: str) -> None:
    """Mark a table's superseded files as deleted."""
    of_table = (files.c.table_name == name) & files.c.until.is_not(None)
    with facts.control.write() as connection:
        connection.execute(update(files).where(of_table).values(gone_at=NOW))


@pytest.mark.extensive
def test_evidence_past_its_retention(laboratory: Laboratory) -> None:
    """The explanation reports evidence that is past retention; the amounts of removed rows are None."""
    recalculated(laboratory)
    facts, then = laboratory.store.facts, NOW + timedelta(minutes=1)
    give_up(facts, USAGE_TABLE)
    found = explained(laboratory, as_of=then)
    assert (
        found.missing == "the measured usage of that revision is no longer kept; history_days says for how long it is"
    )
    give_up(facts, CHARGEBACKS_TABLE)
    assert [each.amount for each in explained(laboratory).revisions] == [None, Decimal(50)]
    with pytest.raises(HistoryGone):
        explained(laboratory, as_of=then)


def test_what_is_not_there(laboratory: Laboratory) -> None:
    """Unknown days, lines and portions are reported."""
    key, rules = explained(laboratory).key, AllocationRules.of(laboratory.tenant)
    for wrong, why in (
        (ExplainKey(DAY, "none", "sa-a"), "has no line 'none'"),
        (ExplainKey(DAY - timedelta(days=30), key.line_id, "sa-a"), "is not calculated"),
        (ExplainKey(DAY, key.line_id, "sa-a", 2), "no portion 2"),
    ):
        with pytest.raises(LineNotFound, match=why):
            explain(laboratory.store, rules, wrong)


@pytest.mark.extensive
def test_rows_of_several_portions(laboratory: Laboratory) -> None:
    """If a line has several portions, one must be given."""
    laboratory.sources.lines[DAY] = [line("100", product="KAFKA_NUM_CKUS")]
    laboratory.run(RECALCULATE)
    with pytest.raises(PortionNeeded, match="portions 1, 2"):
        explained(laboratory, product="KAFKA_NUM_CKUS")
    assert explained(laboratory, product="KAFKA_NUM_CKUS", portion=2).is_same
