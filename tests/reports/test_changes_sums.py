"""Charges of two ranges, compared with their bills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import delete

from chargeback.access.scope import RowScope
from chargeback.errors import StorageError
from chargeback.model.chargeback import CHARGEBACKS
from chargeback.model.dated import DatedValue
from chargeback.model.days import instants
from chargeback.model.effects import BilledType, Quantity
from chargeback.model.money import to_units
from chargeback.reports.changes import ComparedCharges, ComparedGroup, ComparedPart, compared_charges
from chargeback.store.control.schema import files
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DIMENSIONS_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, equal
from chargeback.store.queries.sums import KeyValues
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, in_list_order, line, new_facts, replace_day, write_lines, write_shares
from tests.support.readers import Read

FIRST = date(2026, 1, 5)
DAYS = days_from(FIRST, 8)
BEFORE, AFTER = instants(DAYS[0], DAYS[3]), instants(DAYS[4], DAYS[7])
CKUS = ("lkc-1", "KAFKA_NUM_CKUS")
ONE = 10**12
NOTHING = ComparedGroup((), 0, (Decimal(0), Decimal(0)), [])


def found(
    read: Read, tables: FactTables | None = None, *by: str, limit: int | None = None, **filters: str
) -> ComparedCharges:
    """Compare the second half of the days with the first one."""

    def _query(reader: TenantReader) -> ComparedCharges:
        return compared_charges(reader, Selection(AFTER, equal(**filters)), BEFORE, by, limit)

    compared: ComparedCharges = read(_query, TagIndex()) if tables is None else read(_query, TagIndex(), tables)
    return compared


def parts_of(compared: ComparedCharges) -> dict[KeyValues, Sequence[ComparedPart]]:
    """Return the parts of what is listed, by its values."""
    return {group.key: group.parts for group in compared.listed}


def test_charges_beside_their_bill(read: Read, facts: FactTables) -> None:
    """Each part has amounts by method, the whole cost, the quantity of calculated days, and the policies."""
    shares = [
        Share(DAYS[0], "sa-1", "60", policy="old"),
        Share(DAYS[0], "sa-2", "40", policy="old"),
        Share(DAYS[4], "sa-1", "70", policy="new"),
        Share(DAYS[4], "sa-1", "10", cost_type="shared", portion=1, policy="new"),
        Share(DAYS[5], "sa-1", "5", policy="old"),
    ]
    write_shares(facts, shares)
    lines = [line(day, cost, quantity=Decimal(3), unit="CKU") for day, cost in zip(DAYS[:6], "123456", strict=True)]
    write_lines(facts, lines)
    compared = found(read, None, "identity_id", identity_id="sa-1")
    assert compared.days == (1, 2)
    (part,) = parts_of(compared)[("sa-1",)]
    assert (part.resource_id, part.product_type, part.by_identity) == (*CKUS, {})
    assert part.before == {"usage_ratio": 60 * ONE}
    assert part.billed.before == BilledType({"usage_ratio": 100 * ONE}, Quantity(3 * ONE, "CKU"), frozenset({"old"}))
    assert part.after == {"usage_ratio": 75 * ONE, "even_split": 10 * ONE}
    assert part.billed.after == BilledType(
        {"usage_ratio": 75 * ONE, "even_split": 10 * ONE}, Quantity(6 * ONE, "CKU"), frozenset({"old", "new"})
    )


@pytest.mark.parametrize("scope", [{"identity_id": ["sa-1"]}, {"tag:team": ["mine"]}])
def test_a_scope_sees_the_bill_of_its_lines(read: Read, facts: FactTables, scope: dict[str, list[str]]) -> None:
    """Costs, quantities and policies include only lines with a visible row, and those with their whole cost. Without a
    visible row, nothing was billed."""
    shares = [
        Share(DAYS[0], "sa-1", "60", line="a"),
        Share(DAYS[0], "sa-2", "40", line="a"),
        Share(DAYS[0], "sa-2", "500", line="b", policy="other"),
        Share(DAYS[4], "sa-2", "700", line="b"),
    ]
    write_shares(facts, shares)
    write_lines(facts, [line(DAYS[n], "1", quantity=Decimal(7), unit="CKU", description=f"{n}") for n in (0, 4)])
    tags = TagIndex({"sa-1": {"team": (DatedValue("mine"),)}})

    def _query(reader: TenantReader) -> ComparedCharges:
        scoped = TenantReader(reader.cursor, facts, tags, scope=RowScope.of(scope))
        return compared_charges(scoped, Selection(AFTER), BEFORE, ("identity_id",))

    (part,) = parts_of(read(_query))[("sa-1",)]
    assert part.billed.before == BilledType({"usage_ratio": 100 * ONE}, None, frozenset({"abc123"}))
    assert (part.after, part.billed.after) == ({}, None)


@pytest.mark.parametrize(
    "lines",
    [
        [{"quantity": Decimal(1), "unit": "GB"}, {"unit": "GB"}],
        [{"quantity": Decimal(1), "unit": "GB"}, {"quantity": Decimal(1), "unit": "TB"}],
        [],
    ],
)
def test_no_quantity(read: Read, facts: FactTables, lines: list[dict[str, Any]]) -> None:
    """The quantity is None if lines are missing, have no quantity, or have several units."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "60")])
    write_lines(facts, [line(DAYS[0], f"{n}", **more) for n, more in enumerate(lines)])
    (part,) = parts_of(found(read, None, "identity_id"))[("sa-1",)]
    assert part.billed.before is not None
    assert part.billed.before.quantity is None
    assert (part.after, part.billed.after) == ({}, None)


@pytest.mark.parametrize(("costs", "mixed"), [("1 -1", True), ("-1 -2", False), ("1 0", False)])
def test_charges_and_refunds(read: Read, facts: FactTables, costs: str, mixed: bool) -> None:
    """The bill shows whether it has both charges and refunds, for any sum."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "60")])
    write_lines(facts, [line(DAYS[0], cost) for cost in costs.split()])
    (part,) = parts_of(found(read, None, "identity_id"))[("sa-1",)]
    assert part.billed.before is not None
    assert part.billed.before.has_refunds == mixed


def test_identities_of_other_groups(read: Read, facts: FactTables) -> None:
    """For every grouping, each part lists the identities whose amount differs."""
    shares = [Share(DAYS[0], "sa-1", "60"), Share(DAYS[0], "sa-2", "40"), Share(DAYS[4], "sa-1", "70")]
    write_shares(facts, shares)
    (part,) = parts_of(found(read, None, "product_type"))[(CKUS[1],)]
    assert part.by_identity == {"sa-1": 10 * ONE, "sa-2": -40 * ONE}
    assert (sum(part.before.values()), sum(part.after.values())) == (100 * ONE, 70 * ONE)


def test_what_is_not_listed_is_together(read: Read, facts: FactTables) -> None:
    """The largest differences are listed, equal ones by their values; the rest is one group. Each part has the
    identities whose amounts rose and fell most, and so has everything together."""
    before = {"sa-1": "10", "sa-2": "50", "sa-3": "30", "sa-4": "10", "sa-5": "20"}
    after = {"sa-1": "90", "sa-2": "20", "sa-3": "60", "sa-4": "11", "sa-5": "22"}
    amounts = [(DAYS[number], *each) for number, of_range in ((0, before), (4, after)) for each in of_range.items()]
    write_shares(facts, [Share(day, payer, amount) for day, payer, amount in amounts])
    compared = found(read, None, "identity_id", limit=2)
    assert [(each.key, each.number, each.amounts) for each in compared.listed] == [
        (("sa-1",), 1, (Decimal(10), Decimal(90))),
        (("sa-2",), 1, (Decimal(50), Decimal(20))),
    ]
    assert compared.other[:3] == ((), 3, (Decimal(60), Decimal(93)))
    (part,) = compared.other.parts
    assert (part.before, part.after) == ({"usage_ratio": 60 * ONE}, {"usage_ratio": 93 * ONE})
    assert part.by_identity == {"sa-3": 30 * ONE, "sa-4": ONE}
    assert compared.by_identity == {CKUS: {"sa-1": 80 * ONE, "sa-2": -30 * ONE}}


def test_the_same_periods_again(read: Read, facts: FactTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second question about two periods, by other columns and with a filter, reads neither charges nor bills again;
    one after a restatement, or about other days, does."""
    write_shares(facts, [Share(DAYS[n], payer, "6") for n in (0, 4) for payer in ("sa-1", "sa-2")])
    write_lines(facts, [line(DAYS[n], "12", quantity=Decimal(3), unit="CKU") for n in (0, 4)])
    opened: list[str] = []
    bound = Cursor._bound

    def _bound(self: Cursor, sql: str, parameters: Mapping[str, object] | None) -> tuple[str, dict[str, object]]:
        opened.extend(name for name in ("amount", "quantity", "policy_hash") if f"{name})" in sql and "$files" in sql)
        return bound(self, sql, parameters)

    monkeypatch.setattr(Cursor, "_bound", _bound)
    first = found(read, None, "identity_id")
    assert {"amount", "policy_hash"} <= set(opened)
    opened.clear()
    again = found(read, None, "resource_id", identity_id="sa-1")
    assert opened == []
    (mine,), (its,) = parts_of(first)[("sa-1",)], parts_of(again)[("lkc-1",)]
    assert (mine.billed, mine.after) == (its.billed, its.after)
    rows = in_list_order([Share(DAYS[4], "sa-1", "60", policy="new")])
    replace_day(facts, CHARGEBACKS_TABLE, DAYS[4], pa.Table.from_pylist(rows, schema=CHARGEBACKS))
    (mine,) = parts_of(found(read, None, "identity_id"))[("sa-1",)]
    assert (mine.before, mine.after) == ({"usage_ratio": 6 * ONE}, {"usage_ratio": 60 * ONE})
    assert mine.billed.after == BilledType({"usage_ratio": 60 * ONE}, Quantity(3 * ONE, "CKU"), frozenset({"new"}))
    assert opened.count("amount") == 1  # of the replaced day's period alone


def test_a_charge_without_its_dimension(read: Read, facts: FactTables) -> None:
    """The sums of a period of which the register lacks a dimension are an error, also if it was known before."""
    shares = [Share(DAYS[0], "sa-1", "60"), Share(DAYS[4], "sa-1", "60")]
    write_shares(facts, shares)
    assert parts_of(found(read, None, "identity_id")).keys() == {("sa-1",)}
    with facts.control.write() as connection:
        connection.execute(delete(files).where(files.c.table_name == DIMENSIONS_TABLE))
    facts.changed()
    with pytest.raises(StorageError, match="lacks 1 of those"):
        found(read, None, "identity_id")


def test_nothing_at_all(read: Read) -> None:
    """Without charges there is nothing to compare."""
    assert found(read, None, "identity_id") == ComparedCharges((0, 0), [], NOTHING, {})


def test_all_rows_are_compared(read: Read, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For any charges and any grouping, the parts sum to the rows."""
    random = Random(3)
    for _ in range(6):
        shares = [
            Share(
                random.choice(DAYS),
                random.choice(["sa-1", "sa-2", "UNALLOCATED"]),
                f"{random.randint(-(10**9), 10**9)}.{random.randint(0, 10**12 - 1):012}",
                resource=random.choice(["lkc-1", "lkc-2"]),
                product=random.choice(["A", "B"]),
                cost_type=random.choice(["usage", "shared"]),
                portion=number,
            )
            for number in range(random.randint(1, 40))
        ]
        tables = new_facts(tmp_path_factory.mktemp("facts"))
        write_shares(tables, shares)
        by = random.choice([("identity_id",), ("product_type", "resource_id"), ("allocation_method",), ("tag:team",)])
        compared = found(read, tables, *by, limit=random.choice([None, 1, 2]))
        parts = [part for group in (*compared.listed, compared.other) for part in group.parts]
        for period, days in enumerate((DAYS[:4], DAYS[4:])):
            sums = [sum((part.before, part.after)[period].values()) for part in parts]
            assert sum(sums) == _units(s for s in shares if s.day in days)


def _units(shares: Iterable[Share]) -> int:
    return sum(to_units(Decimal(share.amount)) for share in shares)
